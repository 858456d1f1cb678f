"""Data files: what comes is what the register says, by https alone, or a clear error says what to do."""

import errno
import hashlib
import http.server
import io
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from metaprior_reproduction import datasets
from metaprior_reproduction.datasets import DataError, files

needs_files = pytest.mark.skipif(
    not os.environ.get("METAPRIOR_DATA"), reason="needs the data files: METAPRIOR_DATA names no folder that has them"
)

NAME, CONTENT = "set/part.bin", bytes(range(256)) * 8
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def entry(*addresses: str) -> files.DataFile:
    return files.DataFile(NAME, SHA256, len(CONTENT), "CC0", "https://home.invalid", addresses)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """One registered file, an empty cache, no folder of data; the cached file's path."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("METAPRIOR_DATA", raising=False)
    monkeypatch.setattr(files, "registry", lambda: {NAME: entry("https://a.invalid/part", "https://b.invalid/part")})
    return tmp_path / "cache" / "metaprior" / "data" / NAME


@pytest.fixture
def held(cache, monkeypatch, tmp_path):
    """A folder that METAPRIOR_DATA names and that has the file; its path."""
    path = tmp_path / "held" / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    monkeypatch.setenv("METAPRIOR_DATA", str(tmp_path / "held"))
    return path


@pytest.fixture
def web(cache, monkeypatch):
    """Answers by address, given in place of the network; the addresses that were asked."""
    requests = pytest.importorskip("requests", reason="downloads need pooch, which brings requests")
    import urllib3

    answers: dict[str, tuple[int, dict, bytes]] = {}
    asked: list[str] = []

    def send(self, request, **_):
        asked.append(request.url)
        status, headers, body = answers.get(request.url, (404, {}, b""))
        response = requests.Response()
        response.status_code, response.url, response.request = status, request.url, request
        response.headers.update(headers)
        response.raw = urllib3.HTTPResponse(io.BytesIO(body), headers, status, preload_content=False)
        return response

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send)
    return answers, asked


# --- the register ----------------------------------------------------------------------


def test_every_registered_file_has_checksum_size_licence_and_https_addresses_only():
    assert len(datasets.registry()) == 395
    for file in datasets.registry().values():
        assert len(bytes.fromhex(file.sha256)) == 32
        assert file.size > 0
        assert file.licence
        assert file.addresses
        assert all(address.startswith("https://") for address in file.addresses)
        assert not Path(file.name).is_absolute()
        assert ".." not in Path(file.name).parts


def test_files_for_non_commercial_use_are_the_splits_and_their_licence_says_so():
    marked = {file.name for file in datasets.registry().values() if file.non_commercial}
    assert marked == {n for n in datasets.registry() if n.startswith("uci/") and ("_test_" in n or "_train_" in n)}
    assert "CC BY-NC 4.0" in datasets.licence("uci/yacht")
    assert datasets.licence("uci/yacht/data.txt") == "CC BY 4.0 (UCI)"
    assert datasets.licence("fashion-mnist") == "MIT"


def test_an_unknown_file_is_refused_with_names_near_it():
    with pytest.raises(ValueError, match="'mnist/t10k-labels' is not a registered file.*mnist/t10k-labels-idx1"):
        datasets.fetch("mnist/t10k-labels")
    with pytest.raises(ValueError, match="is not a registered file"):
        datasets.fetch("../registry.json")


@needs_files
def test_the_named_folder_has_the_registered_bytes():
    for name in datasets.registry():
        assert datasets.fetch(name) == Path(os.environ["METAPRIOR_DATA"]) / name


# --- a folder that has the files ---------------------------------------------------------


def test_a_file_in_the_named_folder_is_used_in_place(held, cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert datasets.fetch(NAME) == held
    assert not cache.parent.exists()


def test_the_digest_is_computed_once_as_long_as_the_file_stays(held, monkeypatch):
    digests, real = [], hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *a: digests.append(1) or real(*a))
    for _ in range(3):
        datasets.fetch(NAME)
    assert len(digests) == 1
    held.write_bytes(CONTENT[::-1])
    os.utime(held, ns=(1, 1))
    with pytest.raises(DataError):
        datasets.fetch(NAME)
    assert len(digests) == 2


def test_a_wrong_checksum_is_told_with_both_checksums_and_what_to_do(held):
    held.write_bytes(CONTENT[::-1])
    came = hashlib.sha256(CONTENT[::-1]).hexdigest()
    with pytest.raises(DataError, match=f"part.bin .*expected sha256 {SHA256}, it has {came}.*Replace it.*a.invalid"):
        datasets.fetch(NAME)


@pytest.mark.parametrize(
    ("content", "words"),
    [(CONTENT[:-1], "is not complete: expected 2,048 bytes, it has 2,047"), (CONTENT + b"x", "is another file.*2,049")],
)
def test_a_file_of_another_length_is_told_with_both_lengths(content, words, held):
    held.write_bytes(content)
    with pytest.raises(DataError, match=f"part.bin .*{words}.*METAPRIOR_DATA"):
        datasets.fetch(NAME)


def test_a_named_folder_that_is_none_is_told(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("METAPRIOR_DATA", str(tmp_path / "absent"))
    with pytest.raises(DataError, match="METAPRIOR_DATA: expected a folder; .*absent' is not one.*unset it"):
        datasets.fetch(NAME)


# --- downloads -----------------------------------------------------------------------------


def test_a_download_goes_to_the_cache_and_is_not_repeated(web, cache):
    answers, asked = web
    answers["https://a.invalid/part"] = (200, {}, CONTENT)
    assert datasets.fetch(NAME) == cache
    assert cache.read_bytes() == CONTENT
    assert datasets.fetch(NAME) == cache
    assert asked == ["https://a.invalid/part"]


def test_a_file_that_the_named_folder_lacks_is_downloaded_and_the_folder_left_alone(web, cache, monkeypatch, tmp_path):
    web[0]["https://a.invalid/part"] = (200, {}, CONTENT)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("METAPRIOR_DATA", str(tmp_path / "empty"))
    assert datasets.fetch(NAME) == cache
    assert not any((tmp_path / "empty").iterdir())


def test_a_damaged_file_in_the_cache_is_replaced(web, cache):
    web[0]["https://a.invalid/part"] = (200, {}, CONTENT)
    cache.parent.mkdir(parents=True)
    cache.write_bytes(CONTENT[:100])
    assert datasets.fetch(NAME).read_bytes() == CONTENT


def test_the_next_address_is_tried_where_one_fails(web):
    answers, asked = web
    answers["https://a.invalid/part"] = (200, {}, CONTENT[::-1])
    answers["https://b.invalid/part"] = (200, {}, CONTENT)
    assert datasets.fetch(NAME).read_bytes() == CONTENT
    assert asked == ["https://a.invalid/part", "https://b.invalid/part"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, {}, CONTENT[::-1]), f"wrong checksum: expected sha256 {SHA256}, it has [0-9a-f]{{64}}"),
        ((200, {}, CONTENT[:100]), "is not complete: expected 2,048 bytes, it has 100"),
        ((200, {"content-length": "2048"}, CONTENT[:100]), "(is not complete|IncompleteRead)"),
        ((404, {}, b""), "404"),
        ((302, {"location": "http://plain.invalid/part"}, b""), "expected an https address; got 'http://plain"),
    ],
)
def test_a_download_that_is_not_the_file_is_told_and_leaves_nothing(answer, words, web, cache):
    answers, asked = web
    answers.update({"https://a.invalid/part": answer, "http://plain.invalid/part": (200, {}, CONTENT)})
    with pytest.raises(DataError, match=rf"(?s){NAME}: cannot be downloaded.*a.invalid.*{words}.*b.invalid.*Check the"):
        datasets.fetch(NAME)
    assert asked == ["https://a.invalid/part", "https://b.invalid/part"]
    assert list(cache.parent.iterdir()) == []


def test_a_redirect_within_https_is_followed(web):
    answers, asked = web
    answers["https://a.invalid/part"] = (302, {"location": "/other"}, b"")
    answers["https://a.invalid/other"] = (200, {}, CONTENT)
    assert datasets.fetch(NAME).read_bytes() == CONTENT
    assert asked == ["https://a.invalid/part", "https://a.invalid/other"]


def test_a_missing_network_is_told_with_what_to_do(cache, monkeypatch):
    def no_network(*_, **__):
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    words = r"(?s)cannot be downloaded.*2,048 bytes of sha256.*usable.*name resolution.*Check the network.*METAPRIOR_"
    with pytest.raises(DataError, match=words):
        datasets.fetch(NAME)
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_is_told(cache, monkeypatch, tmp_path):
    (tmp_path / "cache").write_text("a file where a folder should be")
    with pytest.raises(DataError, match="part.bin: cannot be written.*XDG_CACHE_HOME"):
        datasets.fetch(NAME)


def test_a_full_disk_is_told(cache, monkeypatch):
    import pooch

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", full)
    with pytest.raises(DataError, match="cannot be written .No space left on device.. Make room"):
        datasets.fetch(NAME)
    assert not cache.exists()


class Server:
    """A server on this machine that counts what it is asked."""

    def __init__(self, handle, context=None):
        self.asked: list[str] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                handle(self)

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def whole(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(CONTENT)))
    handler.end_headers()
    handler.wfile.write(CONTENT)


def test_a_plain_http_server_is_refused_without_being_asked(cache, monkeypatch):
    with Server(whole) as server:
        address = f"http://127.0.0.1:{server.port}/part"
        monkeypatch.setattr(files, "registry", lambda: {NAME: entry(address)})
        with pytest.raises(DataError, match=f"expected an https address; got '{address}'"):
            datasets.fetch(NAME)
        assert server.asked == []


@pytest.fixture
def certificate(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    paths = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run([*command.split(), "-keyout", paths[0], "-out", paths[1]], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(paths[1], paths[0])
    return context, paths[1]


def test_over_real_https_the_file_comes_a_cut_answer_a_way_out_and_a_stranger_do_not(cache, monkeypatch, certificate):
    context, authority = certificate
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def handle(handler):
        if handler.path == "/out":
            handler.send_response(302)
            handler.send_header("Location", f"http://127.0.0.1:{plain.port}/part")
            handler.end_headers()
        elif handler.path == "/cut":
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(CONTENT)))
            handler.end_headers()
            handler.wfile.write(CONTENT[:500])
        else:
            whole(handler)

    def fetched(path):
        monkeypatch.setattr(files, "registry", lambda: {NAME: entry(f"https://127.0.0.1:{server.port}{path}")})
        return datasets.fetch(NAME)

    with Server(whole) as plain, Server(handle, context) as server:
        with pytest.raises(DataError, match="(?i)certificate"):  # nobody vouches for it yet
            fetched("/part")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority))
        with pytest.raises(DataError, match="expected an https address; got 'http://127"):
            fetched("/out")
        with pytest.raises(DataError, match="IncompleteRead|is not complete"):
            fetched("/cut")
        assert not cache.exists()
        assert fetched("/part").read_bytes() == CONTENT
        assert server.asked == ["/out", "/cut", "/part"]
        assert plain.asked == []
