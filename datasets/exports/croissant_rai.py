"""Responsible-AI fields of a Croissant description, from the manifest of a build; nothing is stated that it does not show.

Source: MLCommons, Croissant RAI Specification 1.0.
"""

from collections.abc import Mapping
from typing import Any

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.reports.dataset_card import list_limits


def describe_responsible_ai(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields by name; those without facts are omitted."""
    contents = manifest.get("contents", {})
    sources = "; ".join(
        f"{each['name'] or 'unnamed'} ({each['license'] or 'no licence stated'}, {count_phrase(each['samples'], 'sample')})"
        for each in contents.get("sources", [])
    )
    tools = [
        " ".join(filter(None, (each["generator"], str(each["version"]), each["model"] and f"with {each['model']}")))
        for each in contents.get("makers", [])
    ]
    stages = [
        f"{name}: {stage['kept']:,} of {stage['candidates']:,} kept"
        for name, stage in manifest.get("stages", {}).items()
        if "kept" in stage and "candidates" in stage
    ]
    limits = list_limits(manifest)
    fields = {
        "dataCollection": sources and f"Captions{' and images' * bool(contents.get('with_image'))} of: {sources}.",
        "dataCollectionType": ["Secondary Data analysis"] if sources else [],
        "dataPreprocessingProtocol": [f"Stages of the build. {'; '.join(stages)}."] if stages else [],
        "dataAnnotationProtocol": "Texts were generated and checked automatically; no person annotated them."
        if tools
        else "",
        "machineAnnotationTools": tools,
        "dataLimitations": limits,
        "dataUseCases": ["Training and evaluation of vision-language models."],
        "personalSensitiveInformation": [
            "Images and captions of the sources can show or name people; they were not searched for such content."
        ],
    }
    return {f"rai:{name}": value for name, value in fields.items() if value}
