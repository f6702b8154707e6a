#include "gallop/app/slurm_job.h"

#include <cctype>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/base/child_process.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

constexpr int kMost = 100000;

std::string in_one_line(std::string text) {
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
    text.replace(at, 1, "; ");
  }
  return printable(text);
}

}  // namespace

void SlurmArguments::add_to(CLI::App& parser) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    return parser.add_option(name, value, help);
  };
  const CLI::Range count(1, kMost);
  parser.add_flag("--slurm", is_wanted, "submit a Slurm batch job");
  parser.add_flag("--dry-run", dry_run, "print the job script without submitting it");
  add("--nodes", job.nodes, "number of nodes; 1 by default")->check(count);
  add("-n,--processes", processes, "processes per node; by default one per GPU, or one")
      ->check(count);
  add("--time", job.time, "time limit, such as 04:00:00 or 1-12:00:00");
  add("--partition", job.partition, "Slurm partition");
  add("--account", job.account, "Slurm account");
  add("--gpus-per-node", job.gpus_per_node, "GPUs per node")->check(count);
  add("--cpus-per-task", job.cpus_per_process, "cores per process")->check(count);
  add("--mem", job.memory, "memory per node, such as 64G");
  add("--job-name", job.name, "job name; the run's name by default");
  add("--signal-seconds", job.signal_seconds,
      "seconds between the request to save and the time limit; 120 by default");
  add("--max-restarts", job.max_restarts,
      "maximum restarts after a failed process within one job; 3 by default")
      ->check(CLI::Range(0, kMost));
  add("--sbatch", job.more_options, "additional sbatch option; may be repeated")
      ->expected(1)
      ->take_all();
}

std::string job_name(std::string name) {
  for (char& c : name) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x80 || (std::isalnum(code) == 0 && c != '.' && c != '-')) c = '_';
  }
  return name;
}

std::string submit_job(const std::string& script) {
  ChildRun run;
  try {
    run = run_to_end({.program = "sbatch", .arguments = {"--parsable"}, .input = script});
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("{}; --dry-run prints the script", error.what()));
  }
  while (run.output.ends_with('\n')) run.output.pop_back();
  // sbatch prints warnings before it.
  const std::string last = run.output.substr(run.output.rfind('\n') + 1);
  std::string number = last.substr(0, last.find(';'));
  const bool is_number =
      !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
  if (run.is_good() && is_number) {
    fmt::print("job        {}\n", number);
    return number;
  }
  throw DeviceError(fmt::format("sbatch {}: {}", run.end.describe(), in_one_line(run.output)));
}

std::string output_of_job(const std::string& number) {
  const ChildRun run = run_to_end({.program = "scontrol", .arguments = {"show", "job", number}});
  const std::string mark = " StdOut=";
  const size_t at = run.output.find(mark);
  if (at == std::string::npos) return {};
  const size_t begin = at + mark.size();
  return run.output.substr(begin, run.output.find('\n', begin) - begin);
}

}  // namespace gallop::app
