"""Memory budgets: what is counted, what is refused, and that everything is given back."""

import gc
import sys
import threading

import numpy as np
import pytest

import dala
from dala import memory, resources
from dala.errors import LimitExceeded, MemoryLimitExceeded, ParameterError
from dala.gpu.compute import buffer, buffer_zeros, from_dlpack, relu
from dala.gpu.compute.engines.hardware import card_bytes
from dala.media.kernels import kernel_from_text
from dala.resources import Account

MIB = 1 << 20


@pytest.fixture
def room():
    """Set the limit of the process so many bytes above what is in use."""

    def leave(nbytes):
        gc.collect()
        dala.set_memory_limit(max(resources.host_bytes() + nbytes, 1))

    before = memory._set_limit, memory._is_set
    yield leave
    memory._set_limit, memory._is_set = before
    resources.set_alarm(memory.process_limit())


def zeros(nbytes, device="cpu"):
    return buffer_zeros(nbytes, "u8", device=device)


def test_process_limit_is_checked_before_allocating(room):
    room(4 * MIB)
    held = [zeros(MIB) for _ in range(4)]
    with pytest.raises(MemoryLimitExceeded) as caught:
        zeros(MIB)
    error = caught.value
    assert isinstance(error, LimitExceeded)
    assert isinstance(error, MemoryError)
    assert (error.asked, error.limit) == (MIB, memory.process_limit())
    assert error.used == resources.host_bytes()
    assert (error.call, error.argument) == ("buffer_zeros", "memory")
    text = str(error)
    assert text.startswith("buffer_zeros: needs 1 MiB of memory, and this process uses ")
    assert text.endswith(
        "Free something, or raise the limit with DALA_MEMORY or dala.set_memory_limit(...)."
    )
    held.pop().free()
    assert zeros(MIB).numpy().sum() == 0  # given back at once


def test_collected_buffers_are_given_back(room):
    room(2 * MIB)
    for _ in range(8):
        assert zeros(2 * MIB).nbytes == 2 * MIB
    cycle = [zeros(2 * MIB)]
    cycle.append(cycle)
    with pytest.raises(MemoryLimitExceeded):
        zeros(MIB)
    del cycle
    gc.collect()
    zeros(MIB)


def test_small_buffers_are_counted_too(room, monkeypatch):
    monkeypatch.setattr(resources, "_BACKLOG", 32)
    room(2 * MIB)
    held, size = [], 32 << 10
    with pytest.raises(MemoryLimitExceeded):
        for _ in range(2000):
            held.append(zeros(size))
    # Small ones are compared now and then: a little more than the limit is possible.
    assert len(held) * size <= 3 * MIB + size
    with pytest.raises(MemoryLimitExceeded):
        zeros(1)
    held.clear()
    zeros(1)


def test_adopted_memory_and_the_null_engine_cost_nothing(room):
    room(MIB)
    array = np.zeros((4, MIB), np.uint8)
    shared = from_dlpack(array, device="cpu")
    assert shared.nbytes == 4 * MIB
    assert np.shares_memory(shared.numpy(), array)
    assert zeros(4 * MIB, device="null").nbytes == 4 * MIB


def test_memory_of_a_block(room):
    before = resources.host_bytes()
    with dala.limits(memory=1000):
        kept = zeros(600)
        with pytest.raises(MemoryLimitExceeded) as caught:
            zeros(600)
        assert (caught.value.asked, caught.value.used, caught.value.limit) == (600, 600, 1000)
        assert str(caught.value) == (
            "buffer_zeros: needs 600 bytes of memory, and the block of dala.limits(memory=1000) "
            "uses 600 bytes of its 1000 bytes. Allow more, or do less work."
        )
        kept.free()
        kept = zeros(1000)
        with dala.limits(memory=500):
            with pytest.raises(MemoryLimitExceeded, match=r"memory=1000\)"):
                zeros(1)
            kept.free()
            with pytest.raises(MemoryLimitExceeded, match=r"memory=500\)"):
                zeros(501)
            inner = zeros(500)
        other = zeros(500)
        with pytest.raises(MemoryLimitExceeded):
            zeros(1)
    zeros(5000)
    del inner, other
    gc.collect()
    assert resources.host_bytes() == before


def test_results_of_kernels_and_expressions_count():
    a = buffer(np.ones(1000, np.float32), device="cpu")
    with dala.limits(memory=3999), pytest.raises(MemoryLimitExceeded, match=r"needs 3\.9 KiB"):
        relu(a).numpy()
    with dala.limits(memory=4000):
        assert relu(a).read_list() == [1.0] * 1000
        expression = a * 2 + 1
    with dala.limits(memory=100), pytest.raises(MemoryLimitExceeded):
        expression.numpy()
    assert expression.numpy().tolist() == [3.0] * 1000  # nothing was lost
    kernel = kernel_from_text("def twice(x): return x * 2")
    with dala.limits(memory=4000):
        assert kernel(a).read_list() == [2.0] * 1000
    with dala.limits(memory=3999), pytest.raises(MemoryLimitExceeded):
        kernel(a).numpy()


def test_failed_allocation_gives_its_bytes_back(room, monkeypatch):
    room(8 * MIB)
    before = resources.snapshot()["buffer"]
    engine = zeros(1).engine

    def fail(nbytes, *, zero):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(engine, "allocate", fail)
        for _ in range(20):
            with pytest.raises(dala.BufferTooLarge, match="has no 1,048,576 bytes left"):
                zeros(MIB)
    gc.collect()
    assert resources.snapshot()["buffer"]["bytes"] <= before["bytes"]
    zeros(8 * MIB)


def test_threads_cannot_both_take_the_last_bytes(room):
    room(8 * MIB)
    held, refused = [], []
    start = threading.Barrier(8)

    def take():
        start.wait()
        for _ in range(8):
            try:
                held.append(zeros(MIB))
            except MemoryLimitExceeded as error:
                refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(held) == 8
    assert len(refused) == 56


def test_finalizer_that_allocates_in_the_middle_of_a_sum():
    """A finalizer may run anywhere, also while this thread holds the lock of the counts."""
    made = []

    # The engine's name is compared while the changes are summed.
    class Name(str):
        def __hash__(self):
            made.append(zeros(MIB).nbytes)
            return hash(str(self))

    resources.track("doc-example", Name("cpu"), 1)
    resources.host_bytes()
    assert made
    resources.untrack("doc-example", "cpu", 1)
    assert resources.snapshot()["doc-example"]["count"] == 0


def test_account_counts_across_threads():
    account = Account("x", 10, "")

    def work():
        for _ in range(2000):
            account.charge(3)
            account.charge(-3)
        account.charge(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert account.used == 4


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (5, 5), ("5", 5), ("5 bytes", None), ("1k", 1024), ("1 KB", 1024), ("2 MiB", 2 * MIB),
        ("1.5g", 3 << 29), ("1TiB", 1 << 40), ("0", None), (0, None), (-1, None), (True, None),
        (1.5, None), ("", None), ("5 %", None), ("x", None), (None, None),
    ],
)  # fmt: skip
def test_sizes(text, size):
    if isinstance(text, str) and "%" in text:
        assert memory.parse_size("f", "a", text) == int(memory.machine_bytes() * 0.05)
    elif size is None:
        with pytest.raises(ParameterError, match=r"f: a must be a positive number of bytes"):
            memory.parse_size("f", "a", text)
    else:
        assert memory.parse_size("f", "a", text) == size


def test_limit_of_the_environment(monkeypatch):
    for text, limit in (("1 GiB", 1 << 30), ("none", None), ("50%", memory.machine_bytes() // 2)):
        monkeypatch.setenv("DALA_MEMORY", text)
        assert memory._default_limit.__wrapped__() == limit
    monkeypatch.setenv("DALA_MEMORY", "much")
    with pytest.raises(ParameterError, match="DALA_MEMORY must be"):
        memory._default_limit.__wrapped__()
    monkeypatch.delenv("DALA_MEMORY")
    assert memory._default_limit.__wrapped__() == int(0.8 * memory.machine_bytes())


def test_control_groups(tmp_path):
    root, me = tmp_path / "cgroup", tmp_path / "self"

    def write(path, text):
        path = root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    me.write_text("0::/a/b\n")
    assert memory._group_sizes(root, me) == []
    write("a/b/memory.max", "max\n")
    write("a/memory.max", "4096\n")
    write("memory.max", "8192\n")
    assert sorted(memory._group_sizes(root, me)) == [4096, 8192]
    me.write_text("12:cpu:/x\n3:memory,foo:/a\n")
    write("memory/a/memory.limit_in_bytes", "100\n")
    write("memory/memory.limit_in_bytes", "9223372036854771712\n")
    assert sorted(memory._group_sizes(root, me))[0] == 100
    me.write_text("nonsense\n")
    assert memory._group_sizes(root, me) == []
    assert memory._group_sizes(root, tmp_path / "missing") == []


def test_refused_limits():
    with pytest.raises(ParameterError, match=r"dala\.set_memory_limit: limit must be a positive"):
        dala.set_memory_limit(0)


def test_pictures_and_videos_are_refused_before_they_are_decoded(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("av")
    path = tmp_path / "large.png"
    image.new("L", (2000, 2000)).save(path)
    assert path.stat().st_size < 10_000
    with (
        dala.limits(memory=MIB),
        pytest.raises(MemoryLimitExceeded, match=r"Frame\.open\(.*needs 30\.5 MiB of memory"),
    ):
        dala.media.Frame.open(path)
    assert dala.media.Frame.open(path).width == 2000
    video = dala.samples.video(next(iter(dala.samples.VIDEOS)))
    with (
        dala.limits(memory=1000),
        pytest.raises(MemoryLimitExceeded, match=r"needs .* of memory, and the block"),
        dala.media.video.open(video) as reader,
    ):
        next(iter(reader))


# graphics cards -----------------------------------------------------------------------------------
@pytest.fixture
def card():
    """The name of a card of its own; nothing is left of it."""
    yield "webgpu:77"
    memory._cards.pop("webgpu:77", None)
    resources.host_bytes()  # sums what was freed while it is still known to be elsewhere
    resources._elsewhere.discard("webgpu:77")


def test_a_card_has_its_own_limit(card):
    memory.add_card(card, "Radeon", 1000 * MIB)
    before = resources.host_bytes()
    held = memory.reserve("buffer", card, 700 * MIB, "buffer")
    assert resources.host_bytes() == before
    with pytest.raises(MemoryLimitExceeded) as caught:
        memory.reserve("buffer", card, 200 * MIB, "buffer")
    assert str(caught.value) == (
        "buffer: needs 200 MiB of memory, and Radeon (webgpu:77) uses 700 MiB of its 800 MiB. "
        "Free something, or set the limit with DALA_GPU_MEMORY."
    )
    memory.add_card(card, "Radeon", 1000 * MIB)  # opened again, with buffers that are still held
    with pytest.raises(MemoryLimitExceeded):
        memory.reserve("buffer", card, 200 * MIB, "buffer")
    memory.release("buffer", card, 700 * MIB, held)
    memory.release("buffer", card, 800 * MIB, memory.reserve("buffer", card, 800 * MIB, "buffer"))


@pytest.mark.parametrize(
    ("text", "size", "limit"),
    [
        ("", None, None),
        ("2 MiB", None, 2 * MIB),
        ("50%", 100 * MIB, 50 * MIB),
        ("none", 100 * MIB, None),
        ("", 100 * MIB, 80 * MIB),
    ],
)
def test_limits_of_cards(card, monkeypatch, text, size, limit):
    monkeypatch.setenv("DALA_GPU_MEMORY", text)
    memory.add_card(card, "GPU", size)
    if limit is None:
        assert card not in memory._cards
    else:
        assert abs(memory._cards[card].limit - limit) <= 1


def test_a_share_of_a_card_of_unknown_size(card, monkeypatch):
    monkeypatch.setenv("DALA_GPU_MEMORY", "50%")
    with pytest.raises(ParameterError, match="since the memory of GPU is not known"):
        memory.add_card(card, "GPU", None)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's files")
def test_the_memory_of_cards(tmp_path):
    for name, files in {
        "card0": {"vendor": "0x8086", "device": "0x1234"},
        "card1": {"vendor": "0x1002", "device": "0x73bf", "mem_info_vram_total": "17163091968"},
        "version": {},
    }.items():
        folder = tmp_path / name / "device"
        folder.mkdir(parents=True)
        for file, text in files.items():
            (folder / file).write_text(text + "\n")
    assert card_bytes(0x1002, 0x73BF, str(tmp_path)) == 17163091968
    assert card_bytes(0x8086, 0x1234, str(tmp_path)) is None
    assert card_bytes(0x10DE, 0x2335, str(tmp_path)) is None
    assert card_bytes(1, 2, str(tmp_path / "none")) is None
