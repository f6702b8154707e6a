// The full program, with every command.
#include <exception>

#include "gallop/app/print.h"
#include "gallop/app/program.h"
#include "gallop/app/registries.h"
#include "gallop/base/heap.h"
#include "gallop/parallel/collectives.h"
#include "gallop/train/out_of_memory.h"

int main(int argc, char** argv) {
  using gallop::app::report_error;
  gallop::retain_freed_memory();
  const gallop::Registries registries;
  try {
    return static_cast<int>(
        gallop::app::run_program(argc, argv, gallop::app::CommandContext(registries)));
  } catch (const gallop::parallel::Rank0Error& error) {
    return static_cast<int>(error.code());  // Said already.
  } catch (const gallop::Error& error) {
    return static_cast<int>(report_error(error));
  } catch (const std::exception& error) {
    if (const auto full = gallop::train::out_of_memory(std::current_exception())) {
      gallop::app::print_error(
          "gallop: out of memory; try a smaller data.batch_size or data.eval_batch. {}\n", *full);
      return static_cast<int>(gallop::ExitCode::kDevice);
    }
    return static_cast<int>(report_error(error));
  }
}
