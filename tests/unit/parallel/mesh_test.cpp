#include "gallop/parallel/mesh.h"

#include <algorithm>
#include <set>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/parallel/sums.h"
#include "unit/base/error_of.h"
#include "unit/parallel/fake_collectives.h"
#include "unit/parallel/ranks_together.h"

namespace gallop::parallel {
namespace {

using Ranks = std::vector<int>;

TEST(DeviceMesh, NumbersRanksAlongTheLastAxisFirst) {
  const DeviceMesh mesh({{"pp", 2}, {"dp_shard", 3}, {"tp", 2}}, 12);
  EXPECT_EQ(mesh.group_of(7, {"tp"}), (Ranks{6, 7}));
  EXPECT_EQ(mesh.group_of(7, {"dp_shard"}), (Ranks{7, 9, 11}));
  EXPECT_EQ(mesh.group_of(7, {"pp"}), (Ranks{1, 7}));
  EXPECT_EQ(mesh.group_of(7, {"pp", "tp"}), (Ranks{0, 1, 6, 7}));
  EXPECT_EQ(mesh.group_of(7, {}), Ranks{7});
  EXPECT_EQ(mesh.coordinate(7, "pp"), 1);
  EXPECT_EQ(mesh.coordinate(7, "dp_shard"), 0);
  EXPECT_EQ(mesh.coordinate(7, "tp"), 1);
  EXPECT_EQ(mesh.size("dp_shard"), 3);
  EXPECT_EQ(mesh.size("cp"), 1);
  EXPECT_THROW(mesh.coordinate(7, "cp"), InternalError);
  EXPECT_THROW(mesh.size("xp"), InternalError);
}

// 1024 processes: the groups of an axis contain each rank once, and two axes share one rank.
TEST(DeviceMesh, DividesManyProcesses) {
  std::vector<DeviceMesh::Axis> axes;
  const int sizes[] = {4, 2, 8, 2, 8};
  for (size_t i = 0; i < std::size(sizes); ++i) axes.push_back({DeviceMesh::kAxes[i], sizes[i]});
  const DeviceMesh mesh(axes, 1024);
  for (const auto& axis : mesh.axes()) {
    std::set<Ranks> groups;
    for (int rank = 0; rank < mesh.size(); rank += 7) {
      const Ranks group = mesh.group_of(rank, {axis.name});
      EXPECT_EQ(static_cast<int>(group.size()), axis.size);
      EXPECT_EQ(group[static_cast<size_t>(mesh.coordinate(rank, axis.name))], rank);
    }
  }
  const Ranks tp = mesh.group_of(500, {"tp"}), dp = mesh.group_of(500, {"dp_shard"});
  Ranks both;
  std::set_intersection(tp.begin(), tp.end(), dp.begin(), dp.end(), std::back_inserter(both));
  EXPECT_EQ(both, Ranks{500});
}

TEST(DeviceMesh, RejectsSizesThatAreNotTheProcesses) {
  EXPECT_EQ(error_of([] {
              DeviceMesh({{"pp", 2}, {"tp", 3}}, 8);
            }),
            "mesh: the axes pp 2, tp 3 are a grid of 6 processes, but there are 8; their product "
            "must be the number of processes");
  EXPECT_THROW(DeviceMesh({{"pp", 0}}, 0), UsageError);
  EXPECT_THROW(DeviceMesh({{"tp", 2}, {"tp", 2}}, 4), UsageError);
}

TEST(DeviceMesh, DividesBatchesAlongDataParallelAxes) {
  const DeviceMesh mesh({{"pp", 2}, {"dp_replicate", 2}, {"dp_shard", 3}, {"tp", 2}}, 24);
  EXPECT_EQ(mesh.batch_part(0).parts, 6);
  std::multiset<int> parts;
  for (int rank = 0; rank < 24; ++rank) parts.insert(mesh.batch_part(rank).part);
  for (int part = 0; part < 6; ++part) EXPECT_EQ(parts.count(part), 4U);
  EXPECT_EQ(mesh.batch_part(2).part, 1);
  EXPECT_EQ(mesh.batch_part(11).part, 5);
  EXPECT_EQ(mesh.batch_part(12).part, 0);
  EXPECT_EQ(DeviceMesh({{"pp", 2}}, 2).batch_part(1).parts, 1);
}

TEST(DeviceMesh, TakesDegreesThatDivideTheProcesses) {
  const auto degree = [](int64_t asked, int processes) {
    return degree_of({"parallel.tensor_parallel_degree", asked}, processes);
  };
  EXPECT_EQ(degree(0, 6), 6);
  EXPECT_EQ(degree(3, 6), 3);
  EXPECT_EQ(degree(4, 1), 1);
  const auto error = [&](int64_t asked, int processes) {
    return error_of([&] { degree(asked, processes); });
  };
  EXPECT_EQ(error(4, 6),
            "parallel.tensor_parallel_degree is 4, which does not divide the 6 processes; set it "
            "to 3 or 6, or start 4 or 8 processes");
  EXPECT_EQ(error(8, 4),
            "parallel.tensor_parallel_degree is 8, which does not divide the 4 processes; set it "
            "to 4, or start 8 processes");
  EXPECT_EQ(error(2, 5),
            "parallel.tensor_parallel_degree is 2, which does not divide the 5 processes; set it "
            "to 5, or start 4 or 6 processes");
  EXPECT_EQ(error(1, 4),
            "parallel.tensor_parallel_degree is 1, so each process has the whole model; use "
            "parallel.name=ddp, or a degree of 2 or more");
}

TEST(DeviceMesh, TakesDegreesOfTwoAxes) {
  const auto degree = [](int64_t stages, int parts, int processes) {
    return degree_of({"parallel.pipeline_parallel_degree", stages}, processes,
                     {"parallel.tensor_parallel_degree", parts}, parts);
  };
  EXPECT_EQ(degree(0, 2, 8), 4);
  EXPECT_EQ(degree(2, 2, 8), 2);
  EXPECT_EQ(degree(2, 1, 1), 1);
  EXPECT_EQ(error_of([&] { degree(3, 2, 8); }),
            "parallel.pipeline_parallel_degree is 3, which does not divide 4 (8 processes / "
            "parallel.tensor_parallel_degree=2); set it to 2 or 4, or start 6 or 12 processes");
  EXPECT_EQ(error_of([&] { degree(2, 4, 4); }),
            "parallel.tensor_parallel_degree is 4, which leaves none of the 4 processes for "
            "parallel.pipeline_parallel_degree; set it to a lower degree, or start 8 processes");
}

// A scope's operators run in the group in which they are started, and are waited for there.
TEST(DeviceMesh, HasCollectivesOfSeveralGroupsUnderWay) {
  run_ranks_together(4, [](Collectives& all) {
    const DeviceMesh mesh({{"dp_replicate", 2}, {"tp", 2}}, 4);
    MeshGroups groups(mesh, all);
    Collectives &tp = groups.along({"tp"}), &dp = groups.along({"dp_replicate"});
    EXPECT_EQ(&groups.along({"dp_replicate", "tp"}), &all);
    EXPECT_EQ(&groups.along({"tp"}), &tp);
    EXPECT_EQ(groups.along({}).size(), 1);
    const double own = 1 << all.rank();
    const auto in_tp = at::full({1}, own), in_dp = at::full({1}, own), in_all = at::full({1}, own);
    const CollectivesScope scope(all);
    {
      const SubgroupScope group(dp);
      all_reduce_async(in_dp);
      {
        const SubgroupScope inner(tp);
        all_reduce_async(in_tp);
      }
    }
    all_reduce_async(in_all);
    for (const at::Tensor& sum : {in_tp, in_dp, in_all}) wait_tensor(sum);
    EXPECT_EQ(in_tp.item<double>(), all.rank() < 2 ? 3 : 12);
    EXPECT_EQ(in_dp.item<double>(), all.rank() % 2 == 0 ? 5 : 10);
    EXPECT_EQ(in_all.item<double>(), 15);
  });
}

TEST(DeviceMesh, MakesProcessGroups) {
  run_ranks(4, [](Collectives& all) {
    const DeviceMesh mesh({{"dp_replicate", 2}, {"dp_shard", 2}}, all.size());
    const auto shards = mesh.group(all, {"dp_shard"}), replicas = mesh.group(all, {"dp_replicate"});
    const auto alone = mesh.group(all, {});
    EXPECT_EQ(shards->rank(), all.rank() % 2);
    EXPECT_EQ(replicas->rank(), all.rank() / 2);
    EXPECT_EQ(alone->size(), 1);
    const double own = all.rank();
    EXPECT_EQ(sum_over_all(*shards, {own}).front(), all.rank() < 2 ? 1 : 5);
    EXPECT_EQ(sum_over_all(*replicas, {own}).front(), all.rank() % 2 == 0 ? 2 : 4);
    EXPECT_EQ(sum_over_all(*alone, {own}).front(), own);
    EXPECT_EQ(sum_over_all(all, {own}).front(), 6);
  });
}

// The error names the group, and the step that the group of all processes has begun.
TEST(DeviceMesh, NamesTheGroupOfACallThatFails) {
  std::string message;
  run_ranks(4,
            [&](Collectives& all) {
              const DeviceMesh mesh({{"dp_replicate", 2}, {"tp", 2}}, 4);
              const auto group = mesh.group(all, {"tp"});
              all.begin(Section::kStep, 7);
              if (all.rank() != 2) return;
              try {
                any_of(*group, true);
              } catch (const DeviceError& error) {
                message = error.what();
              }
            },
            {.limits = {.step = 0.5}});
  EXPECT_TRUE(message.starts_with("rank 2 of 4: step 7, call 1, tp: sum of 8 bytes: ")) << message;
}

}  // namespace
}  // namespace gallop::parallel
