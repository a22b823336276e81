"""Files behind URLs, in a real S3 server and a real web server: read, written, fetched by their hash, refused."""

import errno
import hashlib
import http.server
import io
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pyarrow.fs
import pyarrow.parquet
import pytest

import textcls
from tests.command_line import fail, run, succeed
from tests.service.processes import free_port
from tests.threaded import threaded
from textcls import InputError
from textcls.data import storage
from textcls.data.storage import OutputFolder

ROOT = Path(__file__).parent.parent.parent
TEXTS = ["my card was charged twice", "where is my parcel", "refund please", ""]
START_SECONDS = 60


def moto() -> str | None:
    """The server of moto, which is an S3 over HTTP with keys that it checks."""
    folder = Path(os.environ.get("TEXTCLS_CLIENTS", ROOT / ".venv-clients"))
    return shutil.which("moto_server", path=str(folder / "moto" / "bin"))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an S3 server."""
    program = moto()
    if program is None:
        pytest.skip("moto is not here (make clients)")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "1000000"}
    process = subprocess.Popen(
        [program, "--host", "127.0.0.1", "--port", str(port)], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"{url}/moto-api/", timeout=1):
                break
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty bucket, which this process knows how to reach."""
    names = {"ENDPOINT_URL": server, "ACCESS_KEY_ID": "of-the-tests", "SECRET_ACCESS_KEY": "secret"}
    for name, value in {**names, "DEFAULT_REGION": "us-east-1", "EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    store = pyarrow.fs.S3FileSystem(endpoint_override=server, allow_bucket_creation=True, allow_bucket_deletion=True)
    store.create_dir("bucket")
    yield "s3://bucket"
    store.delete_dir_contents("bucket")


def put(url: str, content: bytes) -> None:
    store, path = pyarrow.fs.FileSystem.from_uri(url)
    with store.open_output_stream(path) as file:
        file.write(content)


def get(url: str) -> bytes:
    store, path = pyarrow.fs.FileSystem.from_uri(url)
    with store.open_input_stream(path) as file:
        return bytes(file.read())


@contextmanager
def unknown_keys(server: str) -> Iterator[None]:
    """The server, which now looks at keys; that of the tests it does not know."""

    def allow(actions: int) -> None:
        body, head = str(actions).encode(), {"content-type": "text/plain"}
        with urllib.request.urlopen(urllib.request.Request(f"{server}/moto-api/reset-auth", body, head)):
            pass

    allow(0)
    try:
        yield
    finally:
        allow(1_000_000)


@contextmanager
def web(folder: Path) -> Iterator[str]:
    """The address of a web server that gives the files of a folder."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing of who breaks off, which would stand in the standard error of the command."""

    with threaded(Server(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))) as found:
        yield f"http://127.0.0.1:{found.server_port}"


# Answers and labelled rows


def test_files_of_a_bucket_are_answered_into_the_bucket_with_the_same_bytes_and_once(
    bucket: str, model_path: Path, tmp_path: Path
) -> None:
    local = tmp_path / "in"
    local.mkdir()
    for name in ("a", "b"):
        pyarrow.parquet.write_table(pyarrow.table({"id": [1, 2, 3, 4], "text": TEXTS}), local / f"{name}.parquet")
        put(f"{bucket}/in/{name}.parquet", (local / f"{name}.parquet").read_bytes())
    put(f"{bucket}/in/_SUCCESS", b"")
    succeed("predict", model_path, local, "-o", f"{tmp_path}/out/")
    call = ("predict", model_path, f"{bucket}/in/*.parquet", "-o", f"{bucket}/out/")
    assert succeed(*call) == f"8 rows in 2 files -> {bucket}/out/\n"
    for name in ("a", "b"):
        assert get(f"{bucket}/out/{name}.parquet") == (tmp_path / "out" / f"{name}.parquet").read_bytes()
    assert succeed(*call) == f"0 rows in 0 files -> {bucket}/out/; 2 files had answers before\n"
    whole = succeed("predict", model_path, f"{bucket}/in", "-o", f"{bucket}/again/")
    assert whole == f"8 rows in 2 files -> {bucket}/again/\n"


def test_files_of_a_bucket_are_answered_into_one_file_here_or_there(
    bucket: str, model_path: Path, tmp_path: Path
) -> None:
    for i, name in enumerate(("a.csv", "b.csv")):
        (tmp_path / name).write_text(f"id,text\n{i},{TEXTS[i]}\n")
        put(f"{bucket}/in/{name}", (tmp_path / name).read_bytes())
    succeed("predict", model_path, tmp_path / "a.csv", tmp_path / "b.csv", "-o", tmp_path / "local.csv")
    for output in (tmp_path / "answers.csv", f"{bucket}/answers.csv"):
        assert succeed("predict", model_path, f"{bucket}/in/*.csv", "-o", output) == f"2 rows -> {output}\n"
    for content in ((tmp_path / "answers.csv").read_bytes(), get(f"{bucket}/answers.csv")):
        assert content == (tmp_path / "local.csv").read_bytes()


def test_labelled_files_of_a_bucket_are_read_as_those_of_a_folder(
    bucket: str, model_path: Path, tmp_path: Path
) -> None:
    rows = ["text,label"] + [f"word {i},{'billing' if i % 2 else 'returns'}" for i in range(8)]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "b.csv").write_text("text,label\nx,billing\ny,\n")
    for name in ("a.csv", "b.csv"):
        put(f"{bucket}/rows/{name}", (tmp_path / name).read_bytes())
    here = succeed("evaluate", model_path, tmp_path / "a.csv", "--json")
    assert succeed("evaluate", model_path, f"{bucket}/rows/a.csv", "--json") == here
    found = textcls.read(f"{bucket}/rows/a*.csv")
    assert (len(found.texts), found.labels[:2]) == (8, ["returns", "billing"])
    said = fail(3, "evaluate", model_path, f"{bucket}/rows/*.csv")
    assert "s3://bucket/rows/b.csv, line 3: the label in column 'label' is empty" in said


def test_a_model_is_trained_on_rows_of_a_bucket(bucket: str, sample_path: Path, tmp_path: Path) -> None:
    rows = tmp_path / "tickets.csv"
    rows.write_text("".join(sample_path.read_text("utf-8").splitlines(keepends=True)[:41]), "utf-8")
    put(f"{bucket}/tickets.csv", rows.read_bytes())
    for name, data, valid in (("there", f"{bucket}/tickets.csv", f"{bucket}/t*.csv"), ("here", rows, rows)):
        succeed("train", data, "--valid", valid, "-o", tmp_path / f"{name}.onnx", "--epochs", "1", "--quiet")
    assert (tmp_path / "there.onnx").read_bytes() == (tmp_path / "here.onnx").read_bytes()


# What is refused


def test_what_is_not_there_is_told_by_its_url(bucket: str, model_path: Path) -> None:
    assert fail(3, "evaluate", model_path, f"{bucket}/none.csv").endswith("check the address and the pattern.\n")
    none = "Error: No file matches s3://nobody/*.csv; check the address and the pattern.\n"
    assert fail(3, "predict", model_path, "s3://nobody/*.csv", "-o", f"{bucket}/out/") == none
    put(f"{bucket}/a.csv", b"text\nhello\n")
    assert "Bucket 'nobody' not found" in fail(6, "predict", model_path, f"{bucket}/a.csv", "-o", "s3://nobody/out/")


def test_a_key_that_the_store_does_not_know_is_told_in_one_sentence(
    server: str, bucket: str, model_path: Path, tmp_path: Path
) -> None:
    put(f"{bucket}/a.csv", b"text,label\nhello,billing\n")
    with unknown_keys(server):
        read = fail(3, "evaluate", model_path, f"{bucket}/a.csv")
        fetched = fail(3, "fetch", f"{bucket}/a.csv", "--sha256", "0" * 64, "-o", tmp_path / "a.csv")
        wrote = fail(3, "predict", model_path, f"{bucket}/*.csv", "-o", f"{tmp_path}/out/")
    for said in (read, fetched, wrote):
        assert "the store refuses it; check the key, and what it may read or write (" in said
    assert not (tmp_path / "a.csv").exists()


def test_without_pyarrow_the_command_to_install_it_is_told(
    model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for call in (
        ("evaluate", model_path, "s3://bucket/a.csv"),
        ("fetch", "s3://bucket/a.csv", "--sha256", "0" * 64, "-o", tmp_path / "a.csv"),
    ):
        assert (
            "needs the package 'pyarrow', which is not installed (about 170 MB); run: pip install \"textcls[parquet]\""
            in fail(5, *call)
        )


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://key:secret@bucket/a b.csv", "s3://bucket/a b.csv"),
        ("https://store.example/a.csv?X-Amz-Signature=secret", "https://store.example/a.csv"),
        ("https://name:secret@store.example:81/a.csv#secret", "https://store.example:81/a.csv"),
        ("folder/a?.csv", "folder/a?.csv"),
    ],
)
def test_a_url_is_shown_without_what_opens_it(url: str, shown: str) -> None:
    assert storage.without_secrets(url) == shown


# By their hash


def test_a_file_is_fetched_from_a_bucket_if_it_is_the_one_that_is_meant(
    bucket: str, model_path: Path, tmp_path: Path
) -> None:
    content = model_path.read_bytes()
    expected = hashlib.sha256(content).hexdigest()
    put(f"{bucket}/tickets.onnx", content)
    output = tmp_path / "tickets.onnx"
    call = ("fetch", f"{bucket}/tickets.onnx", "--output", output, "--sha256")
    said = fail(3, *call, "0" * 64)
    assert said == (
        f"Error: s3://bucket/tickets.onnx has the SHA-256 {expected}, and {'0' * 64} was expected; nothing was kept.\n"
    )
    assert list(tmp_path.iterdir()) == []
    assert succeed(*call, expected.upper()) == f"{len(content):,} bytes -> {output}\n"
    assert output.read_bytes() == content
    kept = output.stat().st_mtime_ns
    assert "is there already" in succeed(*call, expected)
    assert output.stat().st_mtime_ns == kept


def test_a_file_is_fetched_from_the_web_and_no_more_than_was_allowed(model_path: Path, tmp_path: Path) -> None:
    content = model_path.read_bytes()
    expected, output = hashlib.sha256(content).hexdigest(), tmp_path / "tickets.onnx"
    with web(model_path.parent) as address:
        call = ("fetch", f"{address}/{model_path.name}?signature=secret", "-o", output, "--sha256", expected)
        said = fail(3, *call, "--max-bytes", "1000")
        assert (
            said
            == f"Error: {address}/{model_path.name} has more than 1,000 bytes, the most allowed; nothing was kept.\n"
        )
        assert list(tmp_path.iterdir()) == []
        output.write_text("an older one")
        succeed(*call)
        assert output.read_bytes() == content
        missing = f"{address}/none.onnx"
        assert fail(3, "fetch", missing, *call[2:5], "0" * 64) == f"Error: There is no file {missing}.\n"
    assert output.read_bytes() == content
    assert "cannot be read: " in fail(3, "fetch", missing, *call[2:5], "0" * 64)


def test_rows_are_read_from_the_web(model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("text,label\nmy card was charged twice,billing\n")
    with web(tmp_path) as address:
        here = succeed("evaluate", model_path, tmp_path / "rows.csv", "--json")
        assert succeed("evaluate", model_path, f"{address}/rows.csv", "--json") == here
        assert textcls.read(f"{address}/rows.csv").labels == ["billing"]


def test_a_file_on_the_web_is_answered_again_once_it_has_changed(model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    page = tmp_path / "web" / "a.csv"
    page.write_text("text\nmy card\nrefund please\n")
    with web(page.parent) as address:
        call = ("predict", model_path, f"{address}/a.csv", "-o", f"{tmp_path}/out/")
        assert succeed(*call).startswith("2 rows in 1 file")
        assert succeed(*call).startswith("0 rows in 0 files")
        page.write_text("text\nmy card\n")
        assert succeed(*call).startswith("1 row in 1 file")
        # Another server has a file of that name.
        with web(page.parent) as other:
            said = fail(2, "predict", model_path, f"{other}/a.csv", "-o", f"{tmp_path}/out/")
            assert f"a.csv holds the answers to {address}/a.csv, and not to {other}/a.csv" in said


@pytest.mark.parametrize(
    ("inputs", "output"),
    [
        (["http://me:SECRET@127.0.0.1:1/no.csv?sig=SECRET"], "out/"),
        (["http://127.0.0.1:1/a.csv?sig=SECRET", "http://127.0.0.1:2/a.csv?sig=SECRET"], "out/"),
        (["{data}"], "file://me:SECRET@{data}"),
        (["file://{data}/*.txt?sig=SECRET"], "out/"),
    ],
)
def test_no_message_of_files_in_folders_shows_what_opens_them(
    model_path: Path, tmp_path: Path, inputs: list[str], output: str
) -> None:
    (tmp_path / "a.csv").write_text("text\nmy card\n")
    given = [name.format(data=tmp_path) for name in (*inputs, output)]
    result = run("predict", model_path, *given[:-1], "-o", given[-1] if "//" in output else tmp_path / output)
    assert result.exit_code
    assert "SECRET" not in result.output + result.stderr


ODD = ("\u00fc.csv", "h#1.csv", "a b.csv", "100%25.csv", "br[1].csv")


def test_names_of_an_fsspec_store_are_shown_whole_and_keys_are_not() -> None:
    assert storage.without_secrets("fsspec+sftp://me:SECRET@host/a#1?b.csv") == "fsspec+sftp://host/a#1?b.csv"
    for name in ("sftp://me:S/ECRET@host/a.csv", "https://host/a.csv?sig=SECRET", "s3://b/a.csv?key=SECRET"):
        assert "ECRET" not in storage.without_secrets(f"fsspec+{name}")


@pytest.mark.parametrize("scheme", ["file://", "fsspec+file://"])
def test_files_behind_urls_may_have_any_name(scheme: str, model_path: Path, tmp_path: Path) -> None:
    if scheme != "file://":
        pytest.importorskip("fsspec", reason="fsspec is not installed")
    (tmp_path / "in").mkdir()
    for name in ODD:
        (tmp_path / "in" / name).write_text("text\nmy card\n")
    call = ("predict", model_path, f"{scheme}{tmp_path}/in", "-o", f"{scheme}{tmp_path}/out/")
    assert succeed(*call).startswith("5 rows in 5 files")
    assert succeed(*call).startswith("0 rows in 0 files")
    assert sorted(path.name for path in (tmp_path / "out").glob("*.csv")) == sorted(ODD)


def test_a_pattern_behind_a_url_is_quoted_as_the_folders_before_it(tmp_path: Path) -> None:
    (tmp_path / "in a").mkdir()
    for name in ("x 1.csv", "y 1.csv", "_x 2.csv"):
        (tmp_path / "in a" / name).write_text("text\nmy card\n")
    assert [file.inside for file in storage.find(f"file://{tmp_path}/in%20a/x%20*.csv")] == ["x 1.csv"]
    # A file in a folder may be one that another program has not finished; one that is named is meant.
    assert [file.inside for file in storage.find(f"file://{tmp_path}/in%20a/_x%202.csv")] == ["_x 2.csv"]


def test_a_name_and_a_password_in_an_address_are_sent_to_that_server_alone(model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("text,label\nmy card was charged twice,billing\n")

    class Locked(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers["Authorization"])
            if self.path == "/moved.csv":
                self.send_response(302)
                self.send_header("Location", f"{elsewhere}/rows.csv")
                self.end_headers()
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write((tmp_path / "rows.csv").read_bytes())

        def log_message(self, *_: Any) -> None:
            pass

    asked: list[str | None] = []
    locked = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Locked)
    with threaded(locked) as server, web(tmp_path) as elsewhere:
        address = f"http://me:p%40ss@127.0.0.1:{server.server_port}"
        assert textcls.read(f"{address}/rows.csv").labels == ["billing"]
        elsewhere = address.replace("me:p%40ss@", "")
        assert textcls.read(f"{address}/moved.csv").labels == ["billing"]
        assert asked == ["Basic bWU6cEBzcw=="] * 3
        assert textcls.read(f"{address.replace(':p%40ss', '')}/rows.csv").labels == ["billing"]
        assert asked.pop() == "Basic bWU6"
        del asked[1:]
        elsewhere = address.replace("me:p%40ss@127.0.0.1", "localhost")
        assert textcls.read(f"{address}/moved.csv").labels == ["billing"]
        assert asked[1:] == ["Basic bWU6cEBzcw==", None]


def test_a_full_disk_is_told_as_such_and_not_as_a_fault_of_the_store(
    model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = shutil.copyfileobj

    def full(source: Any, target: Any) -> None:
        if isinstance(target, io.BufferedWriter):  # A file, and not what the server here sends to.
            raise OSError(errno.ENOSPC, "")
        usual(source, target)

    (tmp_path / "rows.csv").write_text("text,label\nmy card,billing\n")
    monkeypatch.setattr("shutil.copyfileobj", full)
    with web(tmp_path) as address:
        said = fail(6, "evaluate", model_path, f"{address}/rows.csv")
    assert f"A copy of {address}/rows.csv cannot be written: No space left on device; free some space" in said


def test_what_cannot_be_fetched_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    output = tmp_path / "a.onnx"
    assert "models/a.onnx is not a URL" in fail(2, "fetch", "models/a.onnx", "--sha256", "0" * 64, "-o", output)
    assert "is not a SHA-256" in fail(2, "fetch", "s3://b/a.onnx", "--sha256", "9f2c", "-o", output)
    assert run("fetch", "s3://b/a.onnx", "-o", output).exit_code == 2
    nowhere = tmp_path / "none" / "a.onnx"
    assert "does not exist" in fail(6, "fetch", "s3://b/a.onnx", "--sha256", "0" * 64, "-o", nowhere)


def test_what_fails_where_a_file_goes_is_not_told_of_where_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"x" * 100)
    failing: Any = SimpleNamespace(write=lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "of the disk here")))
    with (
        web(tmp_path) as address,
        pytest.raises(OSError, match="of the disk here"),
        storage.opened(f"{address}/model.onnx") as source,
    ):
        shutil.copyfileobj(source, failing)


@pytest.mark.parametrize("inside", ["../x.csv", "a/../../x.csv", "a//x.csv", "./x.csv", "", "a/\0.csv"])
def test_a_key_of_a_store_never_leads_out_of_the_output_folder(tmp_path: Path, inside: str) -> None:
    for folder in (str(tmp_path / "out"), "s3://bucket/out"):
        with pytest.raises(InputError, match="is not a file name in"):
            OutputFolder(folder).place(inside)


def test_a_link_in_the_output_folder_is_not_followed_out_of_it(tmp_path: Path) -> None:
    folder = OutputFolder(str(tmp_path / "out"))
    (tmp_path / "out" / "away").symlink_to(tmp_path)
    with pytest.raises(InputError, match="is a link that leads out of"):
        folder.place("away/x.csv")
    assert folder.place("away.csv") == str(tmp_path / "out" / "away.csv")


class Short(http.server.BaseHTTPRequestHandler):
    """Sends less than it has announced."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        rows = b"text,label\n" + b"my card was charged,billing\n" * 100
        if self.path == "/chunks.csv":
            self.send_header("Transfer-Encoding", "chunked")
            rows = b"%x\r\n%b\r\n" % (len(rows), rows)
        else:
            self.send_header("Content-Length", "10000")
        self.end_headers()
        self.wfile.write(rows)
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize(("name", "early"), [("rows.csv", "7,189 bytes early"), ("chunks.csv", "early")])
def test_a_body_that_ends_before_its_length_is_an_error_and_not_a_shorter_table(
    model_path: Path, tmp_path: Path, name: str, early: str
) -> None:
    with threaded(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Short)) as server:
        url = f"http://127.0.0.1:{server.server_port}/{name}"
        for command in (
            ("predict", model_path, url, "-o", tmp_path / "out.csv"),
            ("train", url, "-o", tmp_path / "m.onnx"),
        ):
            assert f"it ends {early}; try again" in fail(3, *command)
    assert [*tmp_path.iterdir()] == []


def test_a_file_that_comes_byte_by_byte_is_given_up_in_time(tmp_path: Path) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        connection = listening.accept()[0]
        with connection, suppress(OSError):
            connection.recv(10_000)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
            for _ in range(1000):
                connection.sendall(b"x")
                time.sleep(0.05)

    thread = threading.Thread(target=drip)
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/a.onnx"
    begun = time.monotonic()
    said = fail(3, "fetch", address, "--sha256", "0" * 64, "-o", tmp_path / "a.onnx", "--timeout", "0.5")
    assert said == f"Error: {address} was not there within 0.5 seconds; nothing was kept; see --timeout.\n"
    assert time.monotonic() - begun < 20
    assert list(tmp_path.iterdir()) == []
    thread.join()
    listening.close()


@pytest.mark.parametrize("command", [("train",), ("check",), ("fetch", "--sha256", "0" * 64, "-o", "x.onnx")])
def test_an_address_that_cannot_be_split_is_told_without_what_may_be_a_key(command: tuple[str, ...]) -> None:
    name, *more = command
    said = fail(3, name, "http://key:secret@[::1/x.csv", *more)
    assert said == "Error: http://... is not a URL that can be read: Invalid IPv6 URL.\n"
