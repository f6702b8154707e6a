#include "gallop/app/report_errors.h"

#include <exception>

#include "gallop/app/print.h"
#include "gallop/app/program.h"
#include "gallop/launch/reported_error.h"
#include "gallop/parallel/collectives.h"
#include "gallop/train/out_of_memory.h"

namespace gallop::app {

ExitCode report_errors(const std::function<ExitCode()>& program) {
  try {
    return program();
  } catch (const parallel::Rank0Error& error) {
    launch::record_error(error.what());  // Rank 0 prints it.
    return error.code();
  } catch (const Error& error) {
    return report_error(error);
  } catch (const std::exception& error) {
    if (const auto full = train::out_of_memory(std::current_exception())) {
      print_error("gallop: out of memory; try a smaller data.batch_size or data.eval_batch. {}\n",
                  *full);
      return ExitCode::kDevice;
    }
    return report_error(error);
  }
}

}  // namespace gallop::app
