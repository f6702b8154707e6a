#include "gallop/app/training_memory.h"

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/parallel/strategy.h"

namespace gallop::app {

namespace {

int64_t share_of(int64_t bytes, bool is_divided, int64_t processes) {
  return is_divided ? bytes / processes : bytes;
}

std::string remedy(const TrainingMemory& memory, int64_t bytes_here) {
  for (const char* name : {"zero-1", "zero-2", "zero-3"}) {
    TrainingMemory other = memory;
    other.strategy = name;
    if (memory.processes == 1 || (parallel::divides_parameters(name) && !memory.has_blocks)) {
      continue;
    }
    const int64_t needed = further_bytes(other);
    if (needed * memory.processes_here > bytes_here) continue;
    return fmt::format("parallel.name={} needs {}", name,
                       needed > 0 ? format_bytes(needed) : "no more than the model");
  }
  return "take processes on more hosts with parallel.name=zero-3, an optimizer with less state, "
         "such "
         "as optimizer.state_bits=8, or a smaller model";
}

}  // namespace

int64_t further_bytes(const TrainingMemory& memory) {
  const int64_t n = memory.processes;
  const int64_t gradients =
      share_of(memory.parameters, parallel::divides_gradients(memory.strategy), n);
  const int64_t state = share_of(memory.state, parallel::divides_update(memory.strategy), n);
  const int64_t freed =
      memory.parameters -
      share_of(memory.parameters, parallel::divides_parameters(memory.strategy), n);
  // Parameters at the last synchronization, and the outer momentum.
  const int64_t outer = memory.strategy == "diloco" && n > 1 ? 2 * memory.parameters : 0;
  return gradients + state + outer - freed;
}

std::string why_not_enough(const TrainingMemory& memory, int64_t available, int64_t retained) {
  const int64_t here = available + retained, needed = further_bytes(memory);
  if (needed * memory.processes_here <= here) return {};
  return fmt::format(
      "not enough memory: besides the model, with {} of parameters, gradients and the optimizer's "
      "state take at least {}{}, and {} are available; {}",
      format_bytes(memory.parameters), format_bytes(needed),
      memory.processes_here > 1
          ? fmt::format(" in each of {} processes on this host", memory.processes_here)
          : "",
      format_bytes(here), remedy(memory, here));
}

}  // namespace gallop::app
