import json
import re

import pytest

from trainlint.facts import devices, store

GIB = 1 << 30
MIB = 1 << 20

NAMES = {
    "RTX 4090": "RTX 4090",
    "4090": "RTX 4090",
    "rtx4090": "RTX 4090",
    "NVIDIA GeForce RTX 4090": "RTX 4090",
    "NVIDIA GeForce RTX 4090 Laptop GPU": "RTX 4090 Laptop",
    "RTX 3080 Max-Q": "RTX 3080 Laptop",
    "3090": "RTX 3090",
    "GTX 1080 Ti": "GTX 1080 Ti",
    "4070 Ti SUPER": "RTX 4070 Ti SUPER",
    "RTX 4060 Ti 16GB": "RTX 4060 Ti 16GB",
    "RTX 4060 Ti": "RTX 4060 Ti",
    "RTX 3060 12GB": "RTX 3060",
    "RTX 6000 Ada": "RTX 6000 Ada",
    "RTX6000-Ada": "RTX 6000 Ada",
    "Quadro RTX 6000": "Quadro RTX 6000",
    "RTXA6000": "RTX A6000",
    "A6000": "RTX A6000",
    "RTX PRO 6000 Blackwell Server Edition": "RTX PRO 6000 Blackwell",
    "A100": "A100",
    "A100 80GB": "A100 80GB",
    "a100-80gb": "A100 80GB",
    "nvidia-a100-80gb": "A100 80GB",
    "A100-SXM4-80GB": "A100 80GB SXM4",
    "NVIDIA A100-PCIE-40GB": "A100 40GB PCIe",
    "NVIDIA A100 80GB PCIe": "A100 80GB PCIe",
    "A800 80GB": "A800 80GB",
    "A800 40GB": "A800 40GB",
    "H800": "H800",
    "H20": "H20",
    "H100": "H100",
    "H100 80GB HBM3": "H100",
    "nvidia-h100-mega-80gb": "H100",
    "h100_sxm": "H100 SXM5",
    "NVIDIA H100 PCIe": "H100 PCIe",
    "H100NVL": "H100 NVL",
    "B200": "B200",
    "GB200": "GB200",
    "GH200": "GH200",
    "NVIDIA GH200 480GB": "GH200 96GB",
    "V100": "V100",
    "V100 32GB": "V100 32GB",
    "Tesla V100-SXM2-16GB": "V100 16GB",
    "nvidia-tesla-v100": "V100",
    "T4": "T4",
    "Tesla T4": "T4",
    "A10G": "A10G",
    "L4": "L4",
    "L40S": "L40S",
    "P100 16GB": "P100",
    "MI300X": "MI300X",
    "AMD Instinct MI300X": "MI300X",
    "Radeon RX 7900 XTX": "RX 7900 XTX",
    "Gaudi2": "Gaudi 2",
    "Apple M2 Pro 16GB": "Apple M2 Pro 16GB",
    "Apple M3 Max 128GB": "Apple M3 Max 128GB",
    "m3-max-128gb": "Apple M3 Max 128GB",
    "M1": "Apple M1",
    "M2 Ultra 192GB": "Apple M2 Ultra 192GB",
    "NVIDIA DGX Spark": "GB10",
    "cpu": "CPU",
    "mps": "Apple GPU",
    "tpu-v5litepod-8": "TPU v5e",
    "v5e-8": "TPU v5e",
    "TPU v3-8": "TPU v3",
    "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb": "A100 80GB SXM4 MIG 1g.10gb",
    "nvidia.com/mig-1g.10gb": "MIG 1g.10gb",
}


@pytest.mark.parametrize(("written", "name"), NAMES.items())
def test_names_as_people_write_them_are_found(written, name):
    found = devices.find(written)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("written", ["", "auto", "gpu", "RTX 6000", "A1000000", "fast card"])
def test_what_names_no_device_is_not_found(written):
    assert devices.find(written) is None


def test_memory_is_what_the_driver_reports():
    assert devices.find("RTX 4090").memory == (24564 * MIB, 24564 * MIB)
    assert devices.find("H100").memory == (81559 * MIB, 81559 * MIB)
    assert devices.find("T4").memory == (15 * GIB, 15 * GIB)


def test_a_name_of_several_sizes_is_an_interval():
    assert devices.find("A100").memory == (40 * GIB, 80 * GIB)
    assert devices.find("A100").bandwidth is None
    assert devices.find("M2 Pro").memory == (16 * GIB, 32 * GIB)
    assert devices.find("V100").memory[1] == 32 * GIB


def test_a_size_nobody_sells_is_claimed_and_contradicted():
    match = devices.match("RTX 4090 48GB")
    assert match.device == devices.find("RTX 4090")
    assert match.claimed == 48 * GIB
    assert match.contradicted
    assert devices.match("A100 64GB").contradicted


@pytest.mark.parametrize(
    "written", ["RTX 4090 24GB", "B200 180GB", "B200 192GB", "H200 141GB", "GH200 480GB", "A10G 22GB"]
)
def test_a_size_it_is_sold_with_is_not_contradicted(written):
    assert devices.match(written).claimed
    assert not devices.match(written).contradicted


def test_abilities_follow_from_the_architecture():
    assert devices.find("T4").bf16 == "emulated"
    assert devices.find("A100").capability == (8, 0)
    assert (devices.find("A100").fp8, devices.find("L4").fp8, devices.find("B200").fp4) == (False, True, True)
    assert devices.find("MI300X").capability is None
    assert devices.find("MI300X").architecture == "gfx942"
    assert devices.find("Apple M1").bf16 == "emulated"


def test_metal_may_use_a_part_of_unified_memory():
    small, large = devices.find("Apple M2 Pro 16GB"), devices.find("Apple M3 Max 128GB")
    assert small.unified
    assert small.usable[0] < 11453.25 * 10**6 < 12713.12 * 10**6 < small.usable[1]
    assert large.usable[0] < 0.75 * large.memory[0] < large.usable[1] < large.memory[1]
    assert devices.find("RTX 4090").usable is None


def test_a_mig_slice_has_the_memory_of_its_profile():
    low, high = devices.find("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb").memory
    assert low <= 9.5 * GIB <= high == 10 * GIB


def test_the_nearest_names_are_offered():
    assert "RTX 4090" in devices.nearest("RTX 4091")
    assert "RTX 6000 Ada" in devices.nearest("RTX 6000")


def test_every_device_has_a_source_and_is_found_by_its_own_name():
    for device in devices.every():
        assert device.source, device.name
        assert devices.find(device.name).name == device.name
        if device.memory:
            assert 0 < device.memory[0] <= device.memory[1]
        if device.memory and device.sizes:
            assert device.memory[1] <= max(device.sizes) * GIB


def test_no_two_devices_share_a_name():
    owners = {}
    for entry in store.read("facts", "devices")["devices"]:
        for name in (entry["name"], *entry.get("aliases", ())):
            assert owners.setdefault(devices._key(name), entry["name"]) == entry["name"], name


def test_sources_name_what_anybody_can_read():
    text = json.dumps(store.read("facts", "devices"))
    assert not re.search(r"file id|find_string|/work/|/tmp/", text)
