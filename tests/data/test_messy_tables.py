"""Tables as people have them: each line of the table is a file, and what becomes of it: its rows, or one sentence."""

import bz2
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, cast

import openpyxl
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
from backports import zstd

from tests.data.tables import CSV, JSONL, TSV, TWO, Write, copied, feed, notes_of, parquet, refusal, rows_of
from textcls import InputError
from textcls.data import BadRows, ReadOptions, excel, open_labelled, open_table, read_labelled, writing
from textcls.data.rows import Row
from textcls.data.tables import open_tables

Rows = list[dict[str, Any]]
HEADER = ["text", "label"]


def xlsx(*rows: list[Any], title: str = "Sheet", more: dict[str, list[list[Any]]] | None = None) -> bytes:
    """The bytes of a workbook."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = title
    for row in rows:
        sheet.append(row)
    for name, others in (more or {}).items():
        other = book.create_sheet(name)
        for row in others:
            other.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def zipped(**files: str) -> bytes:
    """The bytes of a zip file; names say their suffix after an underscore."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("MACOSX_", "__MACOSX/").replace("_csv", ".csv"), content)
    return file.getvalue()


def with_method(archive: bytes, method: int) -> bytes:
    """A zip file of one member that says that it is packed by another method."""
    found = bytearray(archive)
    found[archive.index(b"PK\3\4") + 8] = found[archive.index(b"PK\1\2") + 10] = method
    return bytes(found)


def feather(table: Any, *, stream: bool = False) -> bytes:
    sink = pyarrow.BufferOutputStream()
    make = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    with make(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


TABLE = pyarrow.table({"text": ["a", "b, c"], "label": ["x", "y"]})
WIDE = [{"text": "a", "label": "x"}, {"text": "b", "label": ""}]
# Name of the file, its content, and its rows, or words of the sentence that refuses it.
FILES: list[tuple[str, str | bytes, Rows | str]] = [
    # Excel
    ("empty_lines_first.csv", "\n\n" + CSV, TWO),
    ("plain.xlsx", xlsx(HEADER, ["a", "x"], ["b, c", "y"]), TWO),
    ("called.csv", xlsx(HEADER, ["a", "x"], ["b, c", "y"]), TWO),
    ("packed.xlsx.bz2", bz2.compress(xlsx(HEADER, ["a", "x"], ["b, c", "y"])), TWO),
    ("first_of_two.xlsx", xlsx(HEADER, ["a", "x"], ["b, c", "y"], more={"notes": [["n"], [1]]}), TWO),
    ("blank_rows.xlsx", xlsx([], HEADER, [], ["a", "x"], [None, None], ["b, c", "y"], []), TWO),
    ("short_row.xlsx", xlsx(HEADER, ["a", "x"], ["b"]), WIDE),
    ("spaces.xlsx", xlsx([" text", "label "], ["a", "x"], ["b, c", "y"]), TWO),
    ("numbers.xlsx", xlsx(HEADER, ["a", 1], ["b", 2.0]), [{"text": "a", "label": "1"}, {"text": "b", "label": "2"}]),
    (
        "unnamed.xlsx",
        xlsx([None, "text", None, "label"], ["", "a", "", "x"]),
        [{"column A": "", "text": "a", "column C": "", "label": "x"}],
    ),
    ("unnamed.csv", "text;label;;\na;x;;\n", [{"text": "a", "label": "x", "column 3": "", "column 4": ""}]),
    ("index.csv", ",text,label\n0,a,x\n", [{"": "0", "text": "a", "label": "x"}]),
    ("said.csv", "sep=;\ntext;label\na;x\nb, c;y\n", TWO),
    (
        "titled.csv",
        "Export;;\n\nof May;;\nid;text;label\n1;a;x\n2;b, c;y\n",
        [{"id": "1"} | TWO[0], {"id": "2"} | TWO[1]],
    ),
    ("titled.tsv", "sep=\t\nExport\t\ntext\tlabel\na\tx\nb, c\ty\n", TWO),
    ("of_a_series.csv", ",text\n0,hello\n1,good bye\n", [{"": "0", "text": "hello"}, {"": "1", "text": "good bye"}]),
    (
        "of_a_series.xlsx",
        xlsx([None, "b"], [0, "x"], [1, "y"]),
        [{"column A": "0", "b": "x"}, {"column A": "1", "b": "y"}],
    ),
    ("commas_in_fragen.csv", "Fragen\na, b\nc, d\n", "line 2: 2 fields where the header has 1"),
    ("commas_in_texts.csv", "text\na, b\nc, d\n", "line 2: 2 fields where the header has 1"),
    ("said_alone.csv", "sep=,\n", "is empty; it needs a header"),
    ("said_alone_without_an_end.csv", "sep=,\r\n\r\n", "is empty; it needs a header"),
    ("taken.csv", "text,,,column 2\na,,,b\n", [{"text": "a", "column 2_": "", "column 3": "", "column 2": "b"}]),
    ("said_with_a_mark.csv", "\ufeffSEP=|\r\ntext|label\r\na|x\r\nb, c|y\r\n", TWO),
    (
        "days.xlsx",
        xlsx(HEADER, ["a", datetime(2024, 5, 31)], ["b", datetime(2024, 5, 31, 8)]),
        [{"text": "a", "label": "2024-05-31"}, {"text": "b", "label": "2024-05-31 08:00:00"}],
    ),
    ("truth.xlsx", xlsx(HEADER, ["a", True]), [{"text": "a", "label": "True"}]),
    ("number_as_text.xlsx", xlsx(HEADER, [4711, "x"]), [{"text": "4711", "label": "x"}]),
    ("formula_as_name.xlsx", xlsx(["text", '="label"'], ["a", "x"]), "row 1: a name is a formula without its"),
    ("empty.xlsx", xlsx(), "sheet 'Sheet' is empty"),
    ("twice.xlsx", xlsx(["text", "text"], ["a", "x"]), [{"text 1": "a", "text 2": "x"}]),
    ("twice.csv", "a,a,a 1,a\n1,2,3,4\n", [{"a 1_": "1", "a 2_": "2", "a 1": "3", "a 3_": "4"}]),
    ("too_wide.xlsx", xlsx(HEADER, ["a", "x", "more"]), "row 2: 3 cells where there are 2 columns"),
    ("damaged.xlsx", xlsx(HEADER, ["a", "x"])[:2000], "is damaged"),
    ("old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "old Excel file (.xls); open it and save it as .xlsx"),
    # packed
    ("a.csv.bz2", bz2.compress(CSV.encode()), TWO),
    ("a.csv.xz", lzma.compress(CSV.encode()), TWO),
    ("a.csv.zst", zstd.compress(CSV.encode()), TWO),
    ("no_suffix", zstd.compress(JSONL.encode()), TWO),
    ("cut.csv.bz2", bz2.compress(CSV.encode() * 99)[:-9], "is cut off"),
    ("cut.csv.zst", zstd.compress(CSV.encode() * 99)[:-9], "is cut off"),
    ("damaged.csv.xz", lzma.compress(CSV.encode())[:20] + bytes(60), "is damaged"),
    ("damaged.csv.bz2", bz2.compress(CSV.encode())[:20] + bytes(60), "is damaged"),
    ("one.zip", zipped(a_csv=CSV), TWO),
    ("beside.zip", zipped(a_csv=CSV, MACOSX_a_csv="x"), TWO),
    ("two.zip", zipped(a_csv=CSV, b_csv=CSV), "a zip file that holds 2 files (a.csv, b.csv); unpack it"),
    ("none.zip", zipped(), "is a zip file that holds no file"),
    ("unknown.zip", with_method(zipped(a_csv=CSV), 99), "is damaged: its compressed data cannot be unpacked"),
    ("nameless.zip", zipped(a_csv=CSV).replace(b"a.csv", b"\0.csv"), "is a zip file that holds no file"),
    ("archive.7z", b"7z\xbc\xaf\x27\x1c" + bytes(20), "a 7z archive; unpack it"),
    ("archive.tar", bytes(257) + b"ustar\x0000" + bytes(200), "a tar archive; unpack it"),
    # JSON
    ("list.json", json.dumps(TWO), TWO),
    ("pretty.json", json.dumps(TWO, indent=2), TWO),
    ("marked.json", "\ufeff" + json.dumps(TWO), TWO),
    ("lines.json", JSONL, TWO),
    ("numbers.json", '[{"text": "a", "label": 1}]', [{"text": "a", "label": 1}]),
    ("list_in_a.data", json.dumps(TWO), TWO),
    ("empty.json", "[]", "holds an empty list"),
    ("one.json", json.dumps({"rows": TWO}, indent=1), "neither a list of objects nor one object per line"),
    ("strings.json", '["a", "b"]', "item 1: expected an object, not a str"),
    ("cut.json", json.dumps(TWO)[:-9], "item 2: the JSON is damaged or cut off (parse error: premature EOF)"),
    ("big.json", '[{"text": "a", "label": "x", "id": 9223372036854775808}]', "(parse error: integer overflow)"),
    ("latin.json", b'[{"text": "caf\xe9"}]', "item 1: bytes that are not UTF-8"),
    ("deep.json", "[" * 100_000, "more than 100 brackets within each other"),
    # Arrow
    ("a.feather", feather(TABLE), TWO),
    ("a.arrow", feather(TABLE, stream=True), TWO),
    ("a.data", feather(TABLE), TWO),
    ("damaged.feather", feather(TABLE)[:90], "is not an Arrow file"),
    # what is not a table
    ("a.pdf", b"%PDF-1.7 ...", "is a PDF; copy its table into a CSV file"),
    ("a.onnx", b"\x08\x0a\x3a\xdd\xc2\x0a", "is a model (ONNX); name a table of texts"),
    ("a.sqlite", b"SQLite format 3\0" + bytes(99), "is a SQLite database"),
    ("a.pkl", b"\x80\x04\x95" + bytes(99), "is a pickle, which could run code when it is read"),
    ("saved.csv", "<!DOCTYPE html><table>", "is a web page; save its table as CSV"),
    ("a.avro", b"Obj\x01" + bytes(99), "is an Avro file"),
    # CSV as spreadsheets of other countries write it
    ("german.csv", CSV.replace(",x", ";x").replace('"b, c",', "b, c;").replace("text,", "text;"), TWO),
    ("excel.txt", TSV.encode("utf-16"), TWO),
]


@pytest.mark.parametrize(("name", "content", "expected"), FILES, ids=[name for name, _, _ in FILES])
def test_a_file_gives_its_rows_or_one_sentence(
    write: Write, monkeypatch: pytest.MonkeyPatch, name: str, content: str | bytes, expected: Rows | str
) -> None:
    path = write(name, content)
    if isinstance(expected, str):
        assert expected in refusal(path)
        return
    assert rows_of(path) == expected
    if not name.endswith((".json", ".txt")):
        feed(monkeypatch, path.read_bytes())
        assert rows_of(Path("-")) == expected


def test_a_sheet_is_chosen_by_its_name_and_the_first_is_told(write: Write) -> None:
    path = write("a.xlsx", xlsx(["n"], [1], title="notes", more={"Q1 tickets": [HEADER, ["a", "x"], ["b, c", "y"]]}))
    assert rows_of(path, sheet="Q1 tickets") == TWO
    assert notes_of(path) == [f"{path} has 2 sheets; reading the first, 'notes'. Choose another with --sheet."]
    assert "has no sheet 'Q2'; it has 'notes', 'Q1 tickets'." in refusal(path, sheet="Q2")
    path = write("b.xlsx", xlsx(title="Empty", more={"Q1 tickets": [HEADER, ["a", "x"]]}))
    assert "sheet 'Empty' is empty; choose another with --sheet: 'Q1 tickets'." in refusal(path)


def test_numbers_times_and_truth_values_of_a_sheet_come_back_into_a_sheet(write: Write, tmp_path: Path) -> None:
    when = datetime(2026, 1, 31, 12, 30)
    took = timedelta(hours=1, minutes=30)
    path = write("a.xlsx", xlsx(["text", "n", "at", "ok", "took"], ["a", 1.5, when, True, took]))
    copied(path, tmp_path / "b.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "b.xlsx").worksheets[0]
    assert [cell.value for cell in sheet[2]] == ["a", 1.5, when, True, took, "yes"]


def test_numbers_and_times_of_a_sheet_are_shown_there_as_before(write: Write, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["text", "price", "at", "number"])
    book.active.append(["a", 12.5, datetime(2026, 1, 31), 2**60])
    shown = {"B2": '#,##0.00 "\u20ac"', "C2": "DD.MM.YYYY", "D2": "0"}
    for place, number_format in shown.items():
        book.active[place].number_format = number_format
    book.save(tmp_path / "a.xlsx")
    copied(tmp_path / "a.xlsx", tmp_path / "b.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "b.xlsx").worksheets[0]
    assert [sheet[place].number_format for place in ("B2", "C2")] == [shown["B2"], shown["C2"]]
    # A sheet would round it.
    assert sheet["D2"].value == str(2**60)


@pytest.mark.parametrize("damage", [(b' s="1"', b' s="99"'), (b' s="1"', b"")], ids=["unknown style", "no style"])
def test_a_sheet_whose_styles_are_damaged_is_read_and_a_date_of_it_stays_one(
    tmp_path: Path, damage: tuple[bytes, bytes]
) -> None:
    book = openpyxl.Workbook(iso_dates=True)
    book.active.append(["text", "at"])
    book.active.append(["a", datetime(2026, 1, 31)])
    book.save(tmp_path / "whole.xlsx")
    with zipfile.ZipFile(tmp_path / "whole.xlsx") as whole, zipfile.ZipFile(tmp_path / "a.xlsx", "w") as damaged:
        for name in whole.namelist():
            damaged.writestr(name, whole.read(name).replace(*damage) if "sheet1" in name else whole.read(name))
    copied(tmp_path / "a.xlsx", tmp_path / "b.xlsx")
    assert openpyxl.load_workbook(tmp_path / "b.xlsx").worksheets[0]["B2"].value == datetime(2026, 1, 31)


def test_columns_of_a_sheet_are_wide_enough_to_be_read_and_their_names_stay_in_sight(
    write: Write, tmp_path: Path
) -> None:
    for rows, width in ((f"{'word ' * 8}\nlonger {'word ' * 100}\n", 60), ("a\n", 6), ("", 6)):
        copied(write("a.csv", f"text\n{rows}"), tmp_path / "b.xlsx")
        sheet = openpyxl.load_workbook(tmp_path / "b.xlsx").worksheets[0]
        assert sheet.column_dimensions["A"].width == width
        assert sheet.freeze_panes == "A2"
        assert sheet["A1"].value == "text"


def test_a_column_of_answers_is_as_wide_as_these(tmp_path: Path) -> None:
    with writing.open_writer(tmp_path / "a.xlsx", "xlsx", ["text"], ["label"], None) as writer:
        writer.write([Row(1, {"text": "a"})], [{"label": "a label of some length"}])
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx").worksheets[0]
    assert sheet.column_dimensions["B"].width == len("a label of some length") + 2


def test_nothing_that_is_written_to_a_sheet_becomes_a_formula(write: Write, tmp_path: Path) -> None:
    copied(write("a.csv", 'text\n"=HYPERLINK(""http://x"")"\n'), tmp_path / "b.xlsx")
    cell = openpyxl.load_workbook(tmp_path / "b.xlsx").worksheets[0]["A2"]
    assert (cell.data_type, cell.value) == ("s", '=HYPERLINK("http://x")')


def test_a_text_that_is_longer_than_a_cell_is_told_and_no_file_is_left(write: Write, tmp_path: Path) -> None:
    from textcls import InputError

    with pytest.raises(InputError, match="line 2: what goes into column 'text' has 32,768 characters"):
        copied(write("a.csv", "text\n" + "a" * 32_768 + "\n"), tmp_path / "b.xlsx")
    assert not (tmp_path / "b.xlsx").exists()


def test_half_a_character_is_told_and_no_damaged_sheet_is_left(write: Write, tmp_path: Path) -> None:
    path = write("a.jsonl", '{"text": "whole"}\n{"text": "\\ud83d half"}\n')
    with pytest.raises(InputError, match=r"line 2: an unpaired surrogate cannot be written .*column 'text'"):
        copied(path, tmp_path / "b.xlsx")
    assert not (tmp_path / "b.xlsx").exists()


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_a_sheet_may_be_packed_once_more(write: Write, tmp_path: Path, suffix: str) -> None:
    assert copied(write("a.csv", CSV), tmp_path / f"b.xlsx{suffix}") == TWO


def test_a_sheet_that_cannot_be_written_says_why_it_cannot(tmp_path: Path) -> None:
    class Full(io.RawIOBase):
        def write(self, data: Any) -> int:
            raise BrokenPipeError

    writer = excel.Writer(cast(IO[bytes], Full()), ["text"], [])
    with pytest.raises(BrokenPipeError):
        writer.close()
    writer.abandon()


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_what_is_packed_when_written_is_read_again_and_the_same_rows_give_the_same_bytes(
    write: Write, tmp_path: Path, suffix: str
) -> None:
    path = write("a.csv", CSV)
    assert copied(path, tmp_path / f"b.csv{suffix}") == TWO
    assert copied(path, tmp_path / f"c.csv{suffix}") == TWO
    assert (tmp_path / f"b.csv{suffix}").read_bytes() == (tmp_path / f"c.csv{suffix}").read_bytes()


# Folders


def test_the_files_of_a_folder_are_one_table_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text('{"text": "b, c", "label": "y"}\n')
    (tmp_path / "a.csv").write_text("text,label\na,x\n")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.csv").write_text("x")
    (tmp_path / "state.json").write_text("{}")
    assert rows_of(tmp_path) == TWO


def test_of_a_folder_of_texts_it_is_said_that_they_are_read_line_by_line(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("one\ntwo\n")
    with open_tables([tmp_path]) as table:
        assert len(list(table.rows)) == 4
        assert "2 files are read line by line; where each is one text, name the folder above" in table.notes[0]
    with open_tables([tmp_path / "a.txt", tmp_path / "b.txt"]) as table:
        assert not table.notes


def test_folders_of_classes_give_a_text_a_file(tmp_path: Path) -> None:
    for name, text in (("x/1.txt", "a\n"), ("y/deep/2", "b, c")):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    assert rows_of(tmp_path) == [
        {"text": "a", "label": "x", "file": "x/1.txt"},
        {"text": "b, c", "label": "y", "file": "y/deep/2"},
    ]
    assert notes_of(tmp_path) == [f"{tmp_path} is read as one folder per class and one file per text."]
    (tmp_path / "x/1.txt").write_bytes(b"caf\xe9")
    assert "1.txt: byte 0xe9 is not UTF-8" in refusal(tmp_path)
    assert rows_of(tmp_path, encoding="latin-1")[0]["text"] == "café"


def test_a_folder_with_files_and_folders_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "old").mkdir()
    assert "holds files and folders, such as a.csv and old; name the files" in refusal(tmp_path)


# Names of classes


def _classes(table: Any) -> Any:
    features = {"text": {"dtype": "string", "_type": "Value"}, "label": {"names": ["x", "y"], "_type": "ClassLabel"}}
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


CLASSES: dict[str, Callable[[Path, Any], object]] = {
    "a.parquet": lambda path, table: pyarrow.parquet.write_table(table, path),
    "a.feather": lambda path, table: path.write_bytes(feather(table)),
}


@pytest.mark.parametrize("name", CLASSES)
def test_numbers_of_classes_become_their_names_and_are_written_as_such(tmp_path: Path, name: str) -> None:
    table = _classes(pyarrow.table({"text": ["a", "b, c"], "label": [0, 1]}))
    CLASSES[name](tmp_path / name, table)
    assert rows_of(tmp_path / name) == TWO
    assert "the numbers in column 'label' are read as the names of their classes" in notes_of(tmp_path / name)[0]
    assert copied(tmp_path / name, tmp_path / "b.parquet") == TWO


def test_metadata_that_are_not_as_they_should_be_leave_the_numbers(tmp_path: Path) -> None:
    table = pyarrow.table({"text": ["a"], "label": [7]})
    for metadata in (b"no json", b"[]", b'{"info": {"features": {"label": {"_type": "ClassLabel", "names": [1]}}}}'):
        pyarrow.parquet.write_table(table.replace_schema_metadata({"huggingface": metadata}), tmp_path / "a.parquet")
        assert rows_of(tmp_path / "a.parquet") == [{"text": "a", "label": 7}]


def test_parquet_of_others_has_no_classes(tmp_path: Path) -> None:
    assert rows_of(parquet(tmp_path / "a.parquet", {"text": ["a"], "label": [0]})) == [{"text": "a", "label": 0}]


def test_titles_above_the_names_of_the_columns_of_a_sheet_are_passed_over_and_told(write: Write) -> None:
    path = write("a.xlsx", xlsx(["Tickets of March"], [], [None, "as of today"], HEADER, ["a b", "x"], ["only this"]))
    assert rows_of(path) == [{"text": "a b", "label": "x"}, {"text": "only this", "label": ""}]
    assert "the lines above the column names are skipped: 'Tickets of March', 'as of today'." in notes_of(path)[0]
    # Some leave a margin.
    margin = write("m.xlsx", xlsx([None, "Tickets"], [None, *HEADER], [None, "a b", "x"]))
    assert rows_of(margin) == [{"column A": "", "text": "a b", "label": "x"}]
    # A list of one column with a note beside it is not a table under titles.
    one_column = write("b.xlsx", xlsx(["text"], ["a b"], ["c d"]))
    assert rows_of(one_column) == [{"text": "a b"}, {"text": "c d"}]
    assert "2 cells where there are 1 columns" in refusal(write("c.xlsx", xlsx(["text"], ["a b"], ["c", "?"], ["d"])))


def test_what_excel_writes_while_a_book_is_open_is_no_file_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(xlsx(HEADER, ["a b", "x"]))
    (tmp_path / "~$a.xlsx").write_bytes(b"somebody")
    for place in (tmp_path, tmp_path / "*.xlsx"):
        assert rows_of(place) == [{"text": "a b", "label": "x"}]


def test_formulas_without_results_matter_only_where_they_are_needed(write: Write) -> None:
    # openpyxl writes formulas without their results; Excel writes both.
    path = write("sums.xlsx", xlsx([*HEADER, "sum"], ["a b", "x", "=1+1"], ["c d", "=A1", 3]))
    bad = BadRows(skip=True)
    assert read_labelled([path], bad=bad).texts == ["a b"]
    (shown,) = bad.shown
    assert shown.where == f"{path}, row 3"
    assert shown.why.startswith("column 'label' holds a formula without its result; open the file in a spreadsheet")
    assert "In 1 row the column 'sum' holds what is not understood" in bad.odd_rows()[0]
    with pytest.raises(InputError, match="row 2: column 'sum' holds a formula without its result"):
        read_labelled([path], ["sum"])
    for name in ("a.csv", "a.jsonl", "a.xlsx"):
        assert [row["sum"] for row in copied(path, path.with_name(name))] == ["", "3"]
    write("sums.xlsx", xlsx([*HEADER, "sum"], ["a b", "x", "=1+1"], ["c d", "y", None]))
    assert [row["sum"] for row in copied(path, path.with_name("a.parquet"))] == [None, ""]


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx", "one.csv"])
def test_empty_rows_between_others_are_counted(write: Write, name: str) -> None:
    rows: dict[str, str | bytes] = {
        "a.csv": "text,label\n\na b,x\n,\n\nc d,y\n\n",
        "a.xlsx": xlsx([], HEADER, [], ["a b", "x"], [None, None], [], ["c d", "y"], []),
        "one.csv": "text\n\na b\n\n\nc d\n\n",
    }
    bad = BadRows()
    with open_table(write(name, rows[name]), bad=bad) as table:
        assert len(list(table.rows)) == 2
    if name == "a.xlsx":
        without = BadRows()
        with open_table(write(name, rows[name]), ReadOptions(header=False), without) as table:
            assert len(list(table.rows)) == 3
        assert without.blank == bad.blank
    assert bad.odd_rows() == ["3 empty rows are passed over."]


def test_rows_of_nothing_but_delimiters_are_blank_lines(write: Write) -> None:
    assert rows_of(write("a.csv", "text,label\na b,x\n,\n \nc d,y\n,\n")) == [
        {"text": "a b", "label": "x"},
        {"text": "c d", "label": "y"},
    ]


def test_a_column_whose_name_has_several_lines_is_named_by_its_words(write: Write) -> None:
    path = write("a.csv", '"Text\nMessage",label\na b,x\n')
    for name in ("Text Message", "Text\\nMessage", "Text\nMessage"):
        with open_labelled([path], [name]) as table:
            assert [row.text for row in table.rows] == ["a b"]


def test_texts_in_class_folders_may_be_packed(tmp_path: Path) -> None:
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
    (tmp_path / "good" / "1.txt.gz").write_bytes(gzip.compress(b"a fine day\n"))
    (tmp_path / "bad" / "1.txt").write_text("a poor day\n")
    found = read_labelled(tmp_path)
    assert [*zip(found.texts, found.labels, strict=True)] == [("a poor day", "bad"), ("a fine day", "good")]
