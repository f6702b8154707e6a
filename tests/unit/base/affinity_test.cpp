#include "gallop/base/affinity.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "gallop/base/temporary_folder.h"

namespace gallop {
namespace {

using Numbers = std::vector<int>;

TEST(Affinity, PartsAreContiguousAndDisjoint) {
  const Numbers all = {0, 1, 4, 5, 6};
  EXPECT_EQ(part_of(all, 0, 2), (Numbers{0, 1}));
  EXPECT_EQ(part_of(all, 1, 2), (Numbers{4, 5, 6}));
  EXPECT_EQ(part_of(all, 0, 1), all);
  for (int parts = 1; parts <= 5; ++parts) {
    Numbers joined;
    for (int part = 0; part < parts; ++part) {
      for (const int core : part_of(all, part, parts)) joined.push_back(core);
    }
    EXPECT_EQ(joined, all);
  }
  EXPECT_EQ(part_of(all, 0, 6), Numbers());
}

// Two nodes with two cores of two threads each, numbered as Linux does on Intel's machines.
TEST(Affinity, PartsStayWithinANumaNode) {
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-affinity-");
  const auto write = [&](const std::string& file, const std::string& text) {
    const fs::path path = folder.path() / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  };
  const Numbers all = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(side_by_side(all, folder.path() / "nothing"), all);
  write("node/node0/cpulist", "0-1,4-5");
  write("node/node1/cpulist", "2-3,6,7");
  for (const int core : all) {
    const std::string topology = "cpu/cpu" + std::to_string(core) + "/topology/";
    write(topology + "physical_package_id", std::to_string(core / 2 % 2));
    write(topology + "core_id", std::to_string(core % 2));
  }
  const Numbers sorted = side_by_side(all, folder.path());
  EXPECT_EQ(sorted, (Numbers{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(part_of(sorted, 1, 2), (Numbers{2, 3, 6, 7}));
  EXPECT_EQ(part_of(sorted, 1, 4), (Numbers{1, 5}));
  EXPECT_EQ(side_by_side({5, 2, 4}, folder.path()), (Numbers{4, 5, 2}));
  EXPECT_EQ(numa_nodes_of(all, folder.path()), 2);
  EXPECT_EQ(numa_nodes_of({0, 1, 4}, folder.path()), 1);
  EXPECT_EQ(numa_nodes_of(all, folder.path() / "nothing"), 1);
}

TEST(Affinity, RespectsTheInheritedAffinity) {
  EXPECT_GE(cores_online(), static_cast<int>(cores_given().size()));
  // In a separate process, as an affinity cannot be widened again.
  const pid_t child = fork();
  if (child == 0) {
    const Numbers last = {cores_given().back()};
    set_cpu_affinity({});
    set_cpu_affinity(last);
    run_on_core(cores_given().front());
    run_on_all_cores();
    cpu_set_t set;
    const bool kept = cores_given() == last && sched_getaffinity(0, sizeof(set), &set) == 0 &&
                      CPU_COUNT(&set) == 1 && CPU_ISSET(last.front(), &set);
    _exit(kept ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace gallop
