#include "gallop/launch/slurm_script.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"

namespace gallop::launch {

namespace {

constexpr int kMostSignalSeconds = 65535;  // Limit of sbatch.
// Time that processes of a group may run after one has ended.
constexpr int kSecondsForOthers = 60;

// The job id of the last array element is that of the array.
constexpr const char* kElement = "\"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\"";

constexpr const char* kPort = R"(  # A different port for each job on a host, and for each start.
  export MASTER_PORT=$((10000 + (SLURM_JOB_ID + 7919 * restarts) % 20000))
)";

// Checks that sbatch parses the text as one word, without quotes, escapes or comments.
void check_word(const char* option, const std::string& text) {
  if (is_plain_word(text)) return;
  throw UsageError(fmt::format(
      "{} is '{}', but may contain only letters, digits and ._-+:,@%/=", option, printable(text)));
}

// Number and unit, as sbatch takes it.
void check_memory(std::string_view text) {
  std::string_view digits = text;
  if (!digits.empty() && std::string_view("KMGT").find(digits.back()) != std::string_view::npos) {
    digits.remove_suffix(1);
  }
  if (parse_number<uint32_t>(digits)) return;
  throw UsageError(
      fmt::format("--mem is '{}', but must be like 64G, in K, M, G or T", printable(text)));
}

void check_times(const SlurmJob& job) {
  if (job.signal_seconds < 1 || job.signal_seconds > kMostSignalSeconds) {
    throw UsageError(fmt::format("--signal-seconds is {}, but must be from 1 to {}",
                                 job.signal_seconds, kMostSignalSeconds));
  }
  if (job.time.empty()) return;
  const auto limit = parse_time_limit(job.time);
  if (!limit || *limit == 0) {
    throw UsageError(fmt::format("--time is '{}', but must be like 04:00:00 or 1-12:00:00",
                                 printable(job.time)));
  }
  if (*limit <= job.signal_seconds) {
    throw UsageError(fmt::format(
        "--signal-seconds is {}, but the job has only {} s (--time {}), and would save at once",
        job.signal_seconds, *limit, job.time));
  }
}

void check_more(const std::string& option) {
  if (option.starts_with('-') && printable(option) == option) return;
  throw UsageError(fmt::format("--sbatch is '{}', but must be an option like --constraint=a100",
                               printable(option)));
}

void check(const SlurmJob& job) {
  check_word("--job-name", job.name);
  check_word("--partition", job.partition);
  check_word("--account", job.account);
  if (!job.memory.empty()) check_memory(job.memory);
  check_times(job);
  for (const std::string& option : job.more_options) check_more(option);
}

std::string header(const SlurmJob& job) {
  std::string text = "#!/bin/bash\n";
  const auto add = [&](const std::string& option) { text += fmt::format("#SBATCH {}\n", option); };
  const auto add_if = [&](const char* option, const std::string& value) {
    if (!value.empty()) add(fmt::format("--{}={}", option, value));
  };
  add_if("job-name", job.name);
  add_if("partition", job.partition);
  add_if("account", job.account);
  add_if("time", job.time);
  add(fmt::format("--nodes={}", job.nodes));
  add(fmt::format("--ntasks-per-node={}", job.processes));
  if (job.cpus_per_process) add(fmt::format("--cpus-per-task={}", *job.cpus_per_process));
  if (job.gpus_per_node) add(fmt::format("--gpus-per-node={}", *job.gpus_per_node));
  add_if("mem", job.memory);
  if (job.array > 0) add(fmt::format("--array=1-{}", job.array));
  add(job.array > 0 ? "--output=slurm-%A_%a.out" : "--output=slurm-%j.out");
  add("--open-mode=append");
  add("--requeue");
  add(fmt::format("--signal=USR1@{}", job.signal_seconds));
  for (const std::string& option : job.more_options) add(option);
  return text;
}

std::string command_line(const SlurmJob& job) {
  std::string text = fmt::format("srun --wait={} --kill-on-bad-exit=0",
                                 job.is_distributed ? kSecondsForOthers : 0);
  // srun does not inherit --cpus-per-task of sbatch.
  if (job.cpus_per_process) text += fmt::format(" --cpus-per-task={}", *job.cpus_per_process);
  text += fmt::format(" \\\n    {}", shell_word(job.program));
  for (size_t i = 0; i < job.arguments.size(); ++i) {
    text += " " + shell_word(job.arguments[i]);
    if (i > 0 || job.run_stem.empty()) continue;
    text += fmt::format(" --name {}\"$SLURM_JOB_ID\"", shell_word(job.run_stem + "-job"));
  }
  return text;
}

}  // namespace

std::optional<int64_t> parse_time_limit(std::string_view text) {
  int64_t days = 0;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto number = parse_number<uint32_t>(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
    text.remove_prefix(dash + 1);
  }
  const size_t first = text.find(':'), last = text.rfind(':');
  if (first == last) return std::nullopt;
  const auto hours = parse_number<uint32_t>(text.substr(0, first));
  const auto minutes = parse_number<uint32_t>(text.substr(first + 1, last - first - 1));
  const auto seconds = parse_number<uint32_t>(text.substr(last + 1));
  if (!hours || !minutes || !seconds || *minutes > 59 || *seconds > 59) return std::nullopt;
  return (days * 24 + *hours) * 3600 + int64_t{*minutes} * 60 + *seconds;
}

std::string slurm_script(const SlurmJob& job) {
  check(job);
  return header(job) + fmt::format(R"(
# Slurm ends a job with SIGTERM, which this script also gets. If it ended, so would the processes before saving.
ended=
trap 'ended=yes' TERM

{2}restarts=0
while true; do
{3}  {0}
  code=$?
  if [ -n "$ended" ]; then exit "$code"; fi
  case $code in
    # Finished; usage errors and bad data, which a restart cannot fix.
    0 | 2 | 3) exit "$code" ;;
    # Stopped and saved; 138: by SIGUSR1 before there was anything to save.
    5 | 138)
      scontrol requeue {5}
      exit "$code"
      ;;
  esac
  if [ "$restarts" -ge {1} ]; then exit "$code"; fi
  restarts=$((restarts + 1))
  echo "srun ended with code $code: starting again ($restarts of {1}){4}" >&2
done
)",
                                   command_line(job), job.max_restarts,
                                   job.is_distributed ? "unset MASTER_ADDR\n" : "",
                                   job.is_distributed ? kPort : "",
                                   job.is_distributed ? ", from the newest checkpoint" : "",
                                   job.array > 0 ? kElement : "\"$SLURM_JOB_ID\"");
}

}  // namespace gallop::launch
