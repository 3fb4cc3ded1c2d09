"""HTML report of loss curves, from the log."""

from pathlib import Path

from pairwright.training.loss_curves import CURVES_FILE, curves_page, write_curves

HEAD = "step,epoch,loss,validation,lr,gradient,scale,samples_per_second,waiting,loss_whole"


def written(out: Path, *rows: str) -> str:
    (out / "log.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    write_curves(out)
    return (out / CURVES_FILE).read_text()


def test_each_column_with_numbers_is_a_curve_and_no_other(tmp_path: Path) -> None:
    page = written(tmp_path, "10,1,3.5,,1e-3,0.5,,100,0.1,0.7", "20,2,2.5,,5e-4,0.25,,90,0.2,0.6")
    assert page.count("<figure") == 5
    assert "loss: from 3.5 to 2.5" in page
    assert "whole (part of the loss): from 0.7 to 0.6" in page
    assert "scale (1" not in page
    assert "validation" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_validation_is_a_second_line_of_the_loss(tmp_path: Path) -> None:
    page = written(tmp_path, "10,1,3.5,,1e-3,1,,1,0,1", "20,2,2.5,2.75,1e-3,1,,1,0,1", "30,3,2,2.5,1e-3,1,,1,0,1")
    assert "validation" in page
    first, second = (page.count(f'class="{name}" d="M') for name in ("first", "second"))
    assert (first, second) == (5, 1)
    # The axis goes from 2 to 3.5, the extremes of both lines.
    assert ">3.5<" in page
    assert ">2<" in page


def test_one_row_is_a_point_and_a_loss_that_is_not_finite_is_skipped(tmp_path: Path) -> None:
    assert "<circle" in written(tmp_path, "10,1,3.5,,1e-3,0.5,,100,0.1,0.7")
    page = written(tmp_path, "10,1,3.5,,1e-3,1,,1,0,1", "20,2,nan,,1e-3,inf,,1,0,1")
    assert 'd="Mnan' not in page
    assert " nan" not in page.replace("to nan", "")


def test_a_log_without_a_row_makes_no_page(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(HEAD + "\n")
    write_curves(tmp_path)
    assert not (tmp_path / CURVES_FILE).exists()
    assert "<b>10</b>" in curves_page(
        "run", [dict(zip(HEAD.split(","), ["10", "1", "3.5", "", "1", "1", "", "1", "0", "1"], strict=True))]
    )
