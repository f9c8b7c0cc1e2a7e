"""Ray clusters and jobs."""

from .launching import files, launcher, said, taken

GIB = 1 << 30

CLUSTER = """\
cluster_name: train
provider: {type: aws}
docker:
  image: a/b
  run_options: [--shm-size=10g]
setup_commands:
  - pip install torch==2.5.1
available_node_types:
  head:
    node_config: {InstanceType: m5.large}
    resources: {}
  worker:
    node_config: {InstanceType: p4d.24xlarge}
    min_workers: 2
    max_workers: 2
head_node_type: head
"""


def test_a_cluster() -> None:
    found = launcher(CLUSTER, "ray-cluster")
    assert said(found) == {
        "device.name": "A100 40GB",
        "device.count": 16,
        "device.host_memory": 1152 * GIB,
        "launch.gpus": 8,
        "launch.image": "a/b",
        "launch.shm": True,
        "launch.shm_memory": 10 * GIB,
        "parallel.nodes": 2,
        "versions.torch": "2.5.1",
    }


def test_how_many_workers_there_are_may_not_be_known() -> None:
    found = launcher(CLUSTER.replace("max_workers: 2", "max_workers: 4"), "ray-cluster")
    assert "device.count" not in found.values
    mixed = CLUSTER.replace("InstanceType: m5.large", "InstanceType: g6.xlarge")
    assert said(launcher(mixed, "ray-cluster"), "device") == {}


def test_clusters_without_accelerators_are_left_alone() -> None:
    assert taken(CLUSTER.replace("p4d.24xlarge", "m5.large")) == []


def test_a_job() -> None:
    text = "entrypoint: torchrun train.py\nworking_dir: code\nruntime_env: {env_vars: {A: b}}\nimage_uri: c\n"
    found = launcher(text, "ray-job")
    assert said(found, "launch.env", "launch.image") == {"launch.env": {"A": "b"}, "launch.image": "c"}
    assert files(found) == {("script", "code/train.py")}
    assert taken("entrypoint: python serve.py\nworking_dir: code\n") == []
