#include "gallop/app/tune/worker_threads.h"

#include "gallop/app/tune/worker.h"
#include "gallop/base/error.h"
#include "gallop/tune/patience.h"

namespace gallop::app {

WorkerThreads::WorkerThreads(const Registries& registries, const tune::StudySettings& settings,
                             const std::vector<Worker>& workers,
                             const OpenStudyClient& open_study_client, const StopRequest& stop)
    : spec_(tune::parse_run_spec(settings.run)),
      reports_{report_unit(registries, settings, spec_),
               RecipeMetrics(registries, settings, spec_)},
      stop_(&stop) {
  if (spec_.recipe.empty() && spec_.command.empty()) {
    throw UsageError(
        "the sweep has neither 'recipe' nor 'command', so nothing can be run here; other "
        "programs get its trials with 'gallop tune ask'");
  }
  for (const Worker& worker : workers) {
    threads_.emplace_back([this, worker, open_study_client] { run(worker, open_study_client); });
  }
}

WorkerThreads::~WorkerThreads() {
  stop_.request(-1);
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool WorkerThreads::are_done() {
  const std::lock_guard lock(mutex_);
  if (done_ < threads_.size()) return false;
  if (error_) std::rethrow_exception(error_);
  return true;
}

void WorkerThreads::run(const Worker& worker, const OpenStudyClient& open_study_client) {
  std::exception_ptr error;
  try {
    work(*open_study_client(), worker.name, spec_, worker.place, reports_, stop_);
  } catch (const tune::StudyUnreachable&) {
    // A stopping worker has nothing to report, and needs no client.
    if (!stop_.requested()) error = std::current_exception();
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  if (error) stop_.request(-1);
  const std::lock_guard lock(mutex_);
  if (error && !error_) error_ = error;
  ++done_;
}

}  // namespace gallop::app
