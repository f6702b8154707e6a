#include "gallop/launch/slurm_script.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/base/child_process.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "unit/base/error_of.h"

namespace gallop::launch {
namespace {

SlurmJob small_job() {
  return {
      .name = "night", .program = "/opt/gallop", .arguments = {"train", "my.yaml", "--continue"}};
}

bool has_line(const std::string& script, const std::string& line) {
  return script.find("\n" + line + "\n") != std::string::npos;
}

TEST(TimeLimit, ParsesSeconds) {
  EXPECT_EQ(parse_time_limit("04:00:00"), 14400);
  EXPECT_EQ(parse_time_limit("4:05:06"), 14706);
  EXPECT_EQ(parse_time_limit("100:00:00"), 360000);
  EXPECT_EQ(parse_time_limit("1-12:00:01"), 129601);
  EXPECT_EQ(parse_time_limit("2147483647-00:00:00"), int64_t{2147483647} * 86400);
  for (const char* text : {"", "90", "4:00", "1-12", "1-12:00", "04:60:00", "04:00:60", "a:00:00",
                           ":00:00", "04::00", "04:00:", "1:2:3:4", "-1:00:00", "1--1:00:00",
                           "04:00:00 ", "9999999999:00:00", "-", "::"}) {
    EXPECT_FALSE(parse_time_limit(text)) << text;
  }
}

TEST(SlurmScript, OmitsUnspecifiedOptions) {
  const std::string script = slurm_script(small_job());
  EXPECT_TRUE(script.starts_with(
      "#!/bin/bash\n#SBATCH --job-name=night\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=1\n"
      "#SBATCH --output=slurm-%j.out\n#SBATCH --open-mode=append\n#SBATCH --requeue\n"
      "#SBATCH --signal=USR1@120\n\n"))
      << script;
  EXPECT_TRUE(has_line(script,
                       "  srun --wait=60 --kill-on-bad-exit=0 \\\n"
                       "    /opt/gallop train my.yaml --continue"))
      << script;
}

TEST(SlurmScript, ContainsAllOptions) {
  SlurmJob job = small_job();
  job.nodes = 2;
  job.processes = 4;
  job.cpus_per_process = 8;
  job.gpus_per_node = 4;
  job.memory = "64G";
  job.time = "1-00:00:00";
  job.partition = "gpu,long";
  job.account = "physics";
  job.signal_seconds = 300;
  job.more_options = {"--constraint=a100", "--comment=\"two words\""};
  job.run_stem = "it's";
  const std::string script = slurm_script(job);
  for (const char* line :
       {"#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=4", "#SBATCH --cpus-per-task=8",
        "#SBATCH --gpus-per-node=4", "#SBATCH --mem=64G", "#SBATCH --time=1-00:00:00",
        "#SBATCH --partition=gpu,long", "#SBATCH --account=physics", "#SBATCH --signal=USR1@300",
        "#SBATCH --constraint=a100", "#SBATCH --comment=\"two words\"",
        "  srun --wait=60 --kill-on-bad-exit=0 --cpus-per-task=8 \\\n"
        "    /opt/gallop train --name 'it'\\''s-job'\"$SLURM_JOB_ID\" my.yaml --continue"}) {
    EXPECT_TRUE(has_line(script, line)) << line << "\n" << script;
  }
}

TEST(SlurmScript, IndependentProcessesContinueWithoutEachOther) {
  SlurmJob job = small_job();
  job.is_distributed = false;
  job.array = 8;
  job.arguments = {"tune", "sweep.yaml", "--join"};
  const std::string script = slurm_script(job);
  for (const char* line :
       {"#SBATCH --array=1-8", "#SBATCH --output=slurm-%A_%a.out",
        "  srun --wait=0 --kill-on-bad-exit=0 \\\n"
        "    /opt/gallop tune sweep.yaml --join",
        "      scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\""}) {
    EXPECT_TRUE(has_line(script, line)) << line << "\n" << script;
  }
  EXPECT_EQ(script.find("MASTER"), std::string::npos) << script;
  EXPECT_EQ(script.find("checkpoint"), std::string::npos) << script;
}

TEST(SlurmScript, RejectsInvalidOptionsByName) {
  const auto error = [](auto change) {
    SlurmJob job = small_job();
    change(job);
    return error_of([&] { slurm_script(job); });
  };
  EXPECT_EQ(error([](SlurmJob& job) { job.partition = "a b"; }),
            "--partition is 'a b', but may contain only letters, digits and ._-+:,@%/=");
  EXPECT_EQ(error([](SlurmJob& job) { job.account = "a#b"; }),
            "--account is 'a#b', but may contain only letters, digits and ._-+:,@%/=");
  EXPECT_EQ(error([](SlurmJob& job) { job.name = "a\nb"; }),
            "--job-name is 'a?b', but may contain only letters, digits and ._-+:,@%/=");
  EXPECT_EQ(error([](SlurmJob& job) { job.memory = "4 GB"; }),
            "--mem is '4 GB', but must be like 64G, in K, M, G or T");
  EXPECT_EQ(error([](SlurmJob& job) { job.memory = "G"; }),
            "--mem is 'G', but must be like 64G, in K, M, G or T");
  EXPECT_EQ(error([](SlurmJob& job) { job.time = "90"; }),
            "--time is '90', but must be like 04:00:00 or 1-12:00:00");
  EXPECT_EQ(error([](SlurmJob& job) { job.time = "00:00:00"; }),
            "--time is '00:00:00', but must be like 04:00:00 or 1-12:00:00");
  EXPECT_EQ(
      error([](SlurmJob& job) { job.time = "00:02:00"; }),
      "--signal-seconds is 120, but the job has only 120 s (--time 00:02:00), and would save at "
      "once");
  EXPECT_EQ(error([](SlurmJob& job) { job.signal_seconds = 0; }),
            "--signal-seconds is 0, but must be from 1 to 65535");
  EXPECT_EQ(error([](SlurmJob& job) { job.more_options = {"constraint"}; }),
            "--sbatch is 'constraint', but must be an option like --constraint=a100");
  EXPECT_EQ(error([](SlurmJob& job) { job.more_options = {"--x\nrm"}; }),
            "--sbatch is '--x?rm', but must be an option like --constraint=a100");
}

/// The script among programs of a folder that stand for srun and scontrol, which write down what
/// they are called with.
class SlurmScriptRun : public testing::Test {
 protected:
  SlurmScriptRun() {
    std::string path = (fs::temp_directory_path() / "gallop-slurm-XXXXXX").string();
    folder_ = mkdtemp(path.data());
    make("scontrol", "echo \"scontrol $*\"\n");
  }
  ~SlurmScriptRun() override { fs::remove_all(folder_); }

  void make(const std::string& name, const std::string& body) {
    std::ofstream(folder_ / name) << "#!/bin/sh\n" << body;
    chmod((folder_ / name).c_str(), 0755);
  }

  // srun exits with these codes in sequence.
  void srun_ends_with(const std::string& codes) {
    std::ofstream(folder_ / "codes") << codes;
    make("srun",
         "echo \"srun $MASTER_PORT ${MASTER_ADDR-none} $6\"\n"
         "cd \"$(dirname \"$0\")\"\n"
         "read -r code rest < codes\n"
         "echo \"$rest\" > codes\n"
         "exit \"$code\"\n");
  }

  ChildCommand command(const std::string& job = "4711") {
    SlurmJob training = small_job();
    training.run_stem = "my run";
    const fs::path script = folder_ / "job.sh";
    std::ofstream(script) << slurm_script(training);
    return {.program = "bash",
            .arguments = {script.string()},
            .variables = {{"PATH", folder_.string() + ":" + getenv("PATH")},
                          {"SLURM_JOB_ID", job},
                          {"MASTER_ADDR", "elsewhere"},
                          {"MASTER_PORT", "1"}},
            .keep_output = true};
  }

  struct Result {
    int code;
    std::string text;
  };
  Result run(const std::string& codes) {
    srun_ends_with(codes);
    const ChildRun run = run_to_end(command());
    return {run.end.exit_code, run.output};
  }

  fs::path folder_;
};

constexpr const char* kFirst = "srun 14711 none my run-job4711\n";

TEST_F(SlurmScriptRun, EndsIfTheTrainingIsDoneOrInvalid) {
  for (const int code : {0, 2, 3}) {
    const Result result = run(std::to_string(code));
    EXPECT_EQ(result.code, code);
    EXPECT_EQ(result.text, kFirst);
  }
}

TEST_F(SlurmScriptRun, RequeuesIfTheTrainingWasStopped) {
  for (const int code : {5, 128 + SIGUSR1}) {
    const Result result = run(std::to_string(code));
    EXPECT_EQ(result.code, code);
    EXPECT_EQ(result.text, std::string(kFirst) + "scontrol requeue 4711\n");
  }
}

TEST_F(SlurmScriptRun, RestartsAfterFailures) {
  Result result = run("4 137 0");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.text, std::string(kFirst) +
                             "srun ended with code 4: starting again (1 of 3), from the newest "
                             "checkpoint\n"
                             "srun 22630 none my run-job4711\n"
                             "srun ended with code 137: starting again (2 of 3), from the newest "
                             "checkpoint\n"
                             "srun 10549 none my run-job4711\n");
  result = run("4 4 1 4 0");
  EXPECT_EQ(result.code, 4);
  EXPECT_NE(result.text.find("(3 of 3)"), std::string::npos);
}

TEST_F(SlurmScriptRun, DoesNotRequeueIfSlurmEndsTheJob) {
  make("srun", "trap 'exit 5' USR1\necho started\nwhile true; do sleep 0.05; done\n");
  ChildProcess child(command());
  char text[64] = "";
  ASSERT_EQ(read(child.output(), text, sizeof(text)), 8);
  child.send(SIGTERM);
  // The script waits for its child process.
  const std::string children =
      "/proc/" + std::to_string(child.id()) + "/task/" + std::to_string(child.id()) + "/children";
  pid_t srun = 0;
  std::ifstream(children) >> srun;
  ASSERT_GT(srun, 0);
  ASSERT_EQ(kill(srun, SIGUSR1), 0);
  EXPECT_EQ(read(child.output(), text, sizeof(text)), 0);
  EXPECT_EQ(child.wait().exit_code, 5);
}

}  // namespace
}  // namespace gallop::launch
