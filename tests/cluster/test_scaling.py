import pytest

from rtrain.cluster.scaling import (
    check_feasible,
    cluster_cpus,
    one_per_core,
    ray_scaling_config,
    refuse_shared_gpu,
    sharing_notice,
    threads_per_worker,
    worker_resources,
    workers_here,
)
from rtrain.config.schema import ScalingConf
from rtrain.config.value_types.num_workers import Elastic
from rtrain.errors import ConfigError, NotEnoughResourcesError
from rtrain.runs.facts import num_cores


def test_a_request_that_fits_passes():
    check_feasible(ScalingConf(num_workers=3), [{"CPU": 2}, {"CPU": 1}], "rtrain fit x")


def test_too_many_workers_name_numbers_and_the_way_out():
    with pytest.raises(NotEnoughResourcesError) as caught:
        check_feasible(ScalingConf(num_workers=9, use_gpu=True), [{"CPU": 8, "GPU": 2}, {"CPU": 8}], "rtrain fit x")
    assert "9 workers (9 CPU, 9 GPU), but the cluster has 16 CPU, 2 GPU on 2 nodes: enough for 2" in str(caught.value)
    assert "try: rtrain fit x num_workers=2" in str(caught.value)


def test_workers_are_not_cut_over_nodes():
    with pytest.raises(NotEnoughResourcesError, match="enough for 0"):
        check_feasible(ScalingConf(num_workers=1, cpus_per_worker=3), [{"CPU": 2}, {"CPU": 2}], "rtrain fit x")


def test_ray_data_keeps_a_cpu_of_its_own():
    check_feasible(ScalingConf(num_workers=2), [{"CPU": 3}], "rtrain fit x", data_cpus=1)
    with pytest.raises(NotEnoughResourcesError, match="enough for 1, with 1 CPU left to read the data"):
        check_feasible(ScalingConf(num_workers=2), [{"CPU": 2}], "rtrain fit x", data_cpus=1)


def test_misspelt_resource_name_is_an_error():
    with pytest.raises(ConfigError, match="Write GPU instead of gpu"):
        worker_resources(ScalingConf(resources_per_worker={"gpu": 1}))


@pytest.mark.parametrize("resources", [{"CPU": 0}, {"CPU": -1}, {"tape": -1}])
def test_a_worker_reserves_something_and_nothing_negative(resources):
    with pytest.raises(ConfigError, match="a worker can't reserve"):
        worker_resources(ScalingConf(resources_per_worker=resources))


def test_workers_without_a_cpu_leave_all_of_them_to_ray_data():
    conf = ScalingConf(num_workers=2, use_gpu=True, resources_per_worker={"CPU": 0, "GPU": 1})
    check_feasible(conf, [{"CPU": 1, "GPU": 2}], "rtrain fit x", data_cpus=1)


def test_own_cluster_has_a_cpu_for_each_worker_and_some_for_data():
    assert cluster_cpus(ScalingConf(num_workers=40), spare=2) == 42


def test_sharing_is_told_in_one_line():
    cores = num_cores()
    assert sharing_notice(ScalingConf(num_workers=cores)) is None
    assert f"{cores + 1} workers share {cores} cores" in sharing_notice(ScalingConf(num_workers=cores + 1))
    many = sharing_notice(ScalingConf(num_workers=1, cpus_per_worker=cores + 62))
    assert many.startswith(f"1 worker requests {cores + 62} CPUs, and this machine has {cores}")
    each = sharing_notice(ScalingConf(num_workers=2, resources_per_worker={"CPU": cores}))
    assert each.startswith(f"2 workers request {cores} CPUs each")
    assert sharing_notice(ScalingConf(num_workers=1, cpus_per_worker=cores)) is None


def test_threads_follow_the_cores_a_worker_really_has():
    cores = num_cores()
    assert threads_per_worker(ScalingConf(num_workers=0), own_cluster=True) == cores
    assert threads_per_worker(ScalingConf(num_workers=1), own_cluster=True) == cores
    assert threads_per_worker(ScalingConf(num_workers=cores * 4), own_cluster=True) == 1
    assert threads_per_worker(ScalingConf(num_workers=1, cpus_per_worker=3), own_cluster=False) == 3


def test_a_range_needs_room_for_its_smallest_number_only():
    check_feasible(ScalingConf(num_workers=Elastic(2, 9)), [{"CPU": 2}], "rtrain fit x")
    with pytest.raises(NotEnoughResourcesError, match=r"requests at least 3 workers \(3 CPU\)"):
        check_feasible(ScalingConf(num_workers=Elastic(3, 9)), [{"CPU": 2}], "rtrain fit x")


def test_a_cluster_of_rtrains_own_takes_one_worker_for_each_core_that_lies_in_the_range():
    cores = num_cores()
    assert workers_here(ScalingConf(num_workers=Elastic(1, cores + 6))) == cores
    assert workers_here(ScalingConf(num_workers=Elastic(cores + 1, cores + 6))) == cores + 1
    assert workers_here(ScalingConf(num_workers=Elastic(1, 1))) == 1
    assert threads_per_worker(ScalingConf(num_workers=Elastic(1, cores + 6)), own_cluster=True) == 1
    assert sharing_notice(ScalingConf(num_workers=Elastic(1, cores + 6))) is None


def test_work_whose_result_workers_do_not_change_has_one_worker_per_core_at_most():
    cores = num_cores()
    assert one_per_core(ScalingConf(num_workers=100 * cores)).num_workers == cores
    assert one_per_core(ScalingConf(num_workers=Elastic(50 * cores, 100 * cores))).num_workers == cores
    assert one_per_core(ScalingConf(num_workers=1)).num_workers == 1
    assert one_per_core(ScalingConf(num_workers=100 * cores, use_gpu=True)).num_workers == 100 * cores


def test_only_a_cluster_that_was_joined_is_followed():
    scaling = ScalingConf(num_workers=Elastic(1, 1000))
    assert ray_scaling_config(scaling, own_cluster=False).num_workers == (1, 1000)
    assert ray_scaling_config(scaling, own_cluster=True).num_workers == num_cores()


@pytest.mark.parametrize("typed", ["GPUU", "GUP", "fancyy"])
def test_a_misspelt_resource_is_told_from_one_that_is_not_enough(typed):
    conf = ScalingConf(num_workers=1, resources_per_worker={typed: 1})
    nodes = [{"CPU": 4, "GPU": 1, "fancy": 1, "node:10.0.0.1": 1, "memory": 1e9}]
    near = "fancy" if typed == "fancyy" else "GPU"
    with pytest.raises(NotEnoughResourcesError, match=f"no resource '{typed}'[^?]*\ndid you mean: {near}"):
        check_feasible(conf, nodes, "rtrain fit x")


def test_a_resource_of_another_name_is_not_enough():
    conf = ScalingConf(num_workers=1, resources_per_worker={"accelerator": 1})
    with pytest.raises(NotEnoughResourcesError, match="0 accelerator"):
        check_feasible(conf, [{"CPU": 4}], "rtrain fit x")


@pytest.mark.parametrize("device", ["GPU", "TPU"])
def test_a_device_that_ray_train_would_refuse_is_refused_before_the_run_begins(device):
    resources = {device: 1.0}
    with pytest.raises(ConfigError, match=rf"scaling\.resources_per_worker\.{device}"):
        worker_resources(ScalingConf(resources_per_worker=resources))
    assert worker_resources(ScalingConf(num_workers=0, resources_per_worker=resources)) == {"CPU": 1.0, **resources}


ASKED = ("num_workers", "resize_seconds", "use_gpu", "cpus_per_worker", "resources_per_worker", "placement_strategy")


@pytest.mark.parametrize(
    ("key", "value", "asked", "found"),
    [
        ("num_workers", 3, "num_workers", 3),
        ("resize_seconds", 5.0, "elastic_resize_monitor_interval_s", 5.0),
        ("use_gpu", True, "resources_per_worker", {"CPU": 1.0, "GPU": 1.0}),
        ("cpus_per_worker", 2.0, "resources_per_worker", {"CPU": 2.0}),
        ("resources_per_worker", {"HPU": 4.0}, "resources_per_worker", {"CPU": 1.0, "HPU": 4.0}),
        ("placement_strategy", "SPREAD", "placement_strategy", "SPREAD"),
    ],
    ids=ASKED,
)
def test_ray_is_asked_for_what_each_key_says(key, value, asked, found):
    assert getattr(ray_scaling_config(ScalingConf(**{key: value}), own_cluster=False), asked) == found
    assert getattr(ray_scaling_config(ScalingConf(), own_cluster=False), asked) != found


@pytest.mark.parametrize(("workers", "share"), [(2, 0.5), (Elastic(1, 4), 0.25)])
def test_workers_of_one_run_share_no_gpu(workers, share):
    conf = ScalingConf(num_workers=workers, use_gpu=True, resources_per_worker={"GPU": share})
    with pytest.raises(ConfigError, match=r"scaling\.resources_per_worker\.GPU: .*\ntry: num_workers=1"):
        refuse_shared_gpu(conf)


@pytest.mark.parametrize(("workers", "share"), [(1, 0.5), (2, 0.6), (2, 1), (0, 0.5)])
def test_a_gpu_of_ones_own_may_be_a_share(workers, share):
    refuse_shared_gpu(ScalingConf(num_workers=workers, use_gpu=True, resources_per_worker={"GPU": share}))
