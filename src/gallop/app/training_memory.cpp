#include "gallop/app/training_memory.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop::app {

namespace {

std::string remedy(const TrainingMemory& memory, int64_t bytes_here) {
  if (!memory.why_whole.empty()) {
    TrainingMemory in_parts = memory;
    in_parts.why_whole.clear();
    const int64_t needed = further_bytes(in_parts);
    if (needed * memory.processes_here <= bytes_here) {
      return fmt::format("{} would do, but {}", format_bytes(needed), memory.why_whole);
    }
  }
  for (const char* name : {"zero-1", "zero-2", "zero-3"}) {
    TrainingMemory other = memory;
    other.strategy = name;
    other.shares = parallel::shares_of(name, memory.processes);
    other.expert_parts = 1;
    other.why_whole.clear();
    if (memory.processes == 1 || (other.shares.parameters > 1 && !memory.has_blocks)) continue;
    const int64_t needed = further_bytes(other);
    if (needed * memory.processes_here > bytes_here) continue;
    return fmt::format("parallel.name={} needs {}", name,
                       needed > 0 ? format_bytes(needed) : "no more than the model");
  }
  return "use processes on more hosts with parallel.name=zero-3, an optimizer with less state, "
         "such as optimizer.state_bits=8, or a smaller model";
}

// What the bytes are of.
std::string what_takes(const TrainingMemory& memory) {
  if (memory.has_model) {
    return fmt::format(
        "besides the model, with {} of parameters, gradients and the optimizer's state take",
        format_bytes(memory.parameters));
  }
  return memory.why_whole.empty()
             ? "parameters, gradients and the optimizer's state take"
             : "the whole model, or the parts of parameters, gradients and the optimizer's state, "
               "take";
}

}  // namespace

int64_t further_bytes(const TrainingMemory& memory) {
  const int64_t all = memory.parameters;
  // Parameters at the last synchronization, and the outer momentum.
  const int64_t outer = memory.strategy == "diloco" && memory.processes > 1 ? 2 * all : 0;
  // The fraction of parameters, gradients and state that a process has of experts and of the rest.
  const double here =
      1 - memory.expert_share + memory.expert_share / static_cast<double>(memory.expert_parts);
  const auto kept = [here](int64_t bytes) {
    return static_cast<int64_t>(static_cast<double>(bytes) * here);
  };
  const int64_t needed = kept(all / memory.shares.parameters) +
                         kept(all / memory.shares.gradients) +
                         kept(memory.state / memory.shares.state) + outer;
  if (memory.has_model) return needed - all;
  return memory.why_whole.empty() ? needed : std::max(needed, all);
}

std::string why_not_enough(const TrainingMemory& memory, int64_t available, int64_t retained) {
  const int64_t here = available + retained, needed = further_bytes(memory);
  if (needed * memory.processes_here <= here) return {};
  return fmt::format(
      "not enough memory: {} at least {}{}, and {} are available; {}", what_takes(memory),
      format_bytes(needed),
      memory.processes_here > 1
          ? fmt::format(" in each of {} processes on this host", memory.processes_here)
          : "",
      format_bytes(here), remedy(memory, here));
}

}  // namespace gallop::app
