#include "gallop/launch/world.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/base/error_of.h"
#include "unit/variable.h"

namespace gallop::launch {
namespace {

using Variables = std::map<std::string, std::string>;

World world_of(const Variables& variables) {
  return read_world([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

std::string error_of(const Variables& variables) {
  return gallop::error_of([&] { world_of(variables); });
}

void expect_error(const Variables& variables, const std::string& words) {
  const std::string error = error_of(variables);
  EXPECT_NE(error.find(words), std::string::npos) << "'" << error << "' lacks '" << words << "'";
}

void expect_world(const World& world, const World& wanted) {
  EXPECT_EQ(world.starter, wanted.starter);
  EXPECT_EQ(world.rank, wanted.rank);
  EXPECT_EQ(world.size, wanted.size);
  EXPECT_EQ(world.local_rank, wanted.local_rank);
  EXPECT_EQ(world.local_size, wanted.local_size);
  EXPECT_EQ(world.host, wanted.host);
  EXPECT_EQ(world.port, wanted.port);
}

const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "node1"},
                             {"MASTER_PORT", "1234"}};
const Variables kMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "2"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables kSlurm = {{"SLURM_PROCID", "5"},
                          {"SLURM_STEP_NUM_TASKS", "6"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_NODEID", "1"},
                          {"SLURM_STEP_TASKS_PER_NODE", "4,2"},
                          {"SLURM_STEP_NODELIST", "gpu[07-08]"}};
const Variables kPmi = {
    {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}};

TEST(World, IsOneProcessByDefault) {
  const World world = world_of({});
  EXPECT_EQ(world.rank, 0);
  EXPECT_EQ(world.size, 1);
  EXPECT_EQ(world.starter, "");
}

TEST(World, ReadsTheVariablesOfEachLauncher) {
  expect_world(world_of(kTorchrun), {.rank = 3,
                                     .size = 4,
                                     .local_rank = 1,
                                     .local_size = 2,
                                     .host = "node1",
                                     .port = 1234,
                                     .starter = "torchrun"});
  expect_world(world_of(kMpi),
               {.rank = 1, .size = 2, .local_rank = 1, .local_size = 2, .starter = "Open MPI"});
  expect_world(world_of(kSlurm), {.rank = 5,
                                  .size = 6,
                                  .local_rank = 1,
                                  .local_size = 2,
                                  .host = "gpu07",
                                  .starter = "Slurm"});

  EXPECT_EQ(world_of(kPmi).starter, "PMI");
}

TEST(World, KnowsTheStoreAndTheNumberOfRestarts) {
  EXPECT_FALSE(world_of(kTorchrun).store_is_there);
  const Variables agent = with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                           {"TORCHELASTIC_RUN_ID", "job"},
                                           {"TORCHELASTIC_RESTART_COUNT", "2"}});
  EXPECT_TRUE(world_of(agent).store_is_there);
  EXPECT_NE(world_of(agent).attempt, world_of(kTorchrun).attempt);
  EXPECT_NE(world_of(agent).attempt,
            world_of(with(agent, {{"TORCHELASTIC_RESTART_COUNT", "3"}})).attempt);
}

TEST(World, HasOneProcessPerHostByDefault) {
  const World world =
      world_of({{"RANK", "2"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "job-master-0"}});
  expect_world(world, {.rank = 2, .size = 3, .host = "job-master-0", .starter = "torchrun"});
}

TEST(World, UsesTheInnermostLauncher) {
  EXPECT_EQ(world_of(with(kPmi, kTorchrun)).starter, "torchrun");
  EXPECT_EQ(world_of(with(kPmi, kMpi)).starter, "Open MPI");
  // One torchrun on each of two hosts.
  const Variables agents = {{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}};
  EXPECT_EQ(world_of(with(kTorchrun, agents)).rank, 3);
  // srun --mpi=pmi2 sets some of PMI's.
  EXPECT_EQ(world_of(with(kSlurm, {{"PMI_RANK", "5"}, {"PMI_SIZE", "6"}})).starter, "Slurm");
}

TEST(World, IgnoresSlurmInABatchScript) {
  EXPECT_EQ(world_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "0"}}).size,
            1);
  EXPECT_EQ(world_of(with(kMpi, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}})).size, 2);
}

TEST(World, RejectsTooManyTasks) {
  expect_error(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "2147483647(x3)"}}),
               "which does not match");
}

TEST(World, RequiresAStoreOnSeveralHosts) {
  Variables apart = kMpi;
  apart["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  apart["OMPI_COMM_WORLD_LOCAL_RANK"] = "0";
  expect_error(apart, "MASTER_ADDR is not set");
  apart["MASTER_ADDR"] = "first";
  EXPECT_EQ(world_of(apart).host, "first");
}

TEST(World, RejectsMissingOrInvalidVariables) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) {
    Variables some = kTorchrun;
    some.erase(name);
    expect_error(some, name);
    some[name] = "many";
    expect_error(some, std::string(name) + " is 'many'");
    some[name] = "-1";
    expect_error(some, name);
  }
  for (const char* name :
       {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_TASKS_PER_NODE"}) {
    Variables some = kSlurm;
    some.erase(name);
    expect_error(some, name);
  }
}

TEST(World, RejectsContradictingVariables) {
  expect_error(with(kTorchrun, {{"RANK", "4"}}), "RANK is 4, but WORLD_SIZE is 4");
  expect_error(with(kTorchrun, {{"LOCAL_RANK", "2"}}), "LOCAL_RANK is 2");
  expect_error(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "5"}}), "than all");
  expect_error(with(kTorchrun, {{"MASTER_PORT", "70000"}}), "MASTER_PORT");
  expect_error(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "4"}}), "which does not match");
  expect_error(with(kSlurm, {{"SLURM_NODEID", "2"}}), "SLURM_NODEID=2");
  expect_error(with(kSlurm, {{"SLURM_STEP_NODELIST", "a["}}), "host list");
  // Inherited from the shell in which srun was called.
  const Variables left = {
      {"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}};
  expect_error(with(kSlurm, left), "rank 0 of 1, but Slurm started 6");
}

TEST(World, AssignsAGpuToEachProcessOfAHost) {
  const World alone, second{.rank = 5, .size = 8, .local_rank = 1, .local_size = 4};
  EXPECT_EQ(choose_gpu(alone, 4), 0);
  EXPECT_EQ(choose_gpu(second, 4), 1);
  EXPECT_EQ(choose_gpu(second, 8), 1);
  EXPECT_EQ(choose_gpu(second, 1), 0);  // Its launcher makes only one visible.
  EXPECT_THROW(choose_gpu(second, 3), DeviceError);
}

TEST(World, ListsTheVariablesOfLaunchers) {
  const std::vector<std::string> names = {"RANK",
                                          "WORLD_SIZE",
                                          "LOCAL_RANK",
                                          "MASTER_ADDR",
                                          "TORCHELASTIC_RUN_ID",
                                          "OMPI_COMM_WORLD_RANK",
                                          "PMIX_RANK",
                                          "PMI_SIZE",
                                          "SLURM_PROCID",
                                          "SLURM_STEP_NUM_TASKS"};
  const std::vector<std::string> others = {"SLURM_CONF", "RANKING", "CUDA_VISIBLE_DEVICES"};
  std::deque<Variable> variables;
  for (const auto* all : {&names, &others}) {
    for (const std::string& name : *all) variables.emplace_back(name, "1");
  }
  const std::vector<std::string> found = starter_variables();
  const auto has = [&](const std::string& name) {
    return std::find(found.begin(), found.end(), name) != found.end();
  };
  for (const std::string& name : names) EXPECT_TRUE(has(name)) << name;
  for (const std::string& name : others) EXPECT_FALSE(has(name)) << name;
}

}  // namespace
}  // namespace gallop::launch
