from trainlint.facts import devices, instances

GIB = 1 << 30


def test_an_instance_type_has_devices_and_host_memory():
    found = instances.find("p4d.24xlarge")
    assert (found.device, found.count, found.host_memory, found.vcpus) == ("A100 40GB", 8, 1152 * GIB, 96)
    assert instances.find("ml.p4d.24xlarge") == found
    assert instances.find("standard_nc40ads_h100_v5").device == "H100 NVL"
    assert instances.find("v5litepod-4").count == 4
    assert instances.find("m5.large") is None


def test_a_share_of_a_device_has_a_share_of_its_memory():
    found = instances.find("Standard_NV6ads_A10_v5")
    assert (found.device, found.count, found.slice) == ("A10", 1, 4 * GIB)


def test_every_instance_names_a_known_device_and_has_a_source():
    for name in instances.every():
        found = instances.find(name)
        device = devices.find(found.device)
        assert device is not None, found
        assert found.count > 0
        assert found.source
        assert found.slice is None or found.slice < device.memory[1]
        assert found.host_memory is None or found.host_memory > 0


def test_types_are_sorted_and_the_nearest_offered():
    assert list(instances.every()) == sorted(instances.every(), key=str.lower)
    assert instances.nearest("p4d.24xlrge")[0] == "p4d.24xlarge"
