"""A data set that LLaMA-Factory's list does not have."""

from collections.abc import Iterator
from difflib import get_close_matches

from trainlint.api import Found, RunView, rule

FETCHED = ("ONLINE", "REMOTE:", "http:", "https:", "s3:", "gs:", "gcs:")

FILES = (".json", ".jsonl", ".csv", ".parquet", ".txt", ".arrow")


@rule(severity="error", formats=("llamafactory", "shell-launcher"))
def check(view: RunView) -> Iterator[Found]:
    listed, folder = view.run.data.registered, view.root.written("dataset_dir")
    if view.root.framework != "llamafactory" or (isinstance(folder, str) and folder.startswith(FETCHED)):
        return
    for key in ("dataset", "eval_dataset"):
        entry = view.root.entry(key)
        value = getattr(entry.value, "value", None) if entry is not None else None
        if entry is None or not isinstance(value, str):
            continue
        for name in filter(None, (part.strip() for part in value.split(","))):
            if name.startswith(FETCHED) or "$" in name:
                continue
            if listed is None:
                if name.endswith(FILES):
                    yield Found(
                        at=entry.value,
                        message=f"`{name}` is a file: LLaMA-Factory wants a name that `dataset_info.json` gives it",
                        help="add the file to `dataset_info.json` in `dataset_dir`, and write its name there",
                        severity="warning",
                    )
                continue
            if name in listed.value:
                continue
            stem = name.rpartition("/")[2].removesuffix(".json").removesuffix(".jsonl")
            close = [stem] if stem in listed.value else get_close_matches(name, listed.value, n=1, cutoff=0.75)
            yield Found(
                at=entry.value,
                message=f"`{name}` is none of the {len(listed.value)} names in `{listed.note}`"
                + (f", did you mean `{close[0]}`" if close else ""),
                help=f"write `{close[0]}`" if close else f"add `{name}` to `{listed.note}`",
            )
