#pragma once

#include <map>
#include <memory>
#include <string>

#include "gallop/launch/world.h"
#include "gallop/parallel/collectives.h"

namespace gallop::app {

/// Throws UsageError if this process is one of several, which would all do the same work.
void require_alone(const char* command);

/// The process group of a training. A single process has no collectives.
class DistributedContext {
 public:
  /// Joins the process group that torchrun, Open MPI, srun, PMI or 'gallop launch' has started (see
  /// launch/world.h): divides the cores of a host if the launcher did not, and waits until all
  /// processes have joined. Throws UsageError if the environment contradicts itself, DeviceError on
  /// a timeout.
  static DistributedContext join();

  bool is_alone() const { return collectives_ == nullptr; }
  bool is_first() const { return is_alone() || collectives_->rank() == 0; }
  int rank() const { return is_alone() ? 0 : collectives_->rank(); }
  int size() const { return is_alone() ? 1 : collectives_->size(); }
  /// The number of processes on this host.
  int local_size() const { return world_.local_size; }
  parallel::Collectives* collectives() const { return collectives_.get(); }

  /// Environment variables for child processes, one started by each process of the group: they form
  /// a process group of their own, with the same store. `name` distinguishes such groups. Empty for
  /// a single process.
  std::map<std::string, std::string> variables_of_children(const std::string& name) const;

  /// See parallel::run_on_rank0().
  template <typename F>
  auto run_on_rank0(const F& function) const {
    return parallel::run_on_rank0(collectives_.get(), function);
  }

 private:
  launch::World world_;
  std::unique_ptr<parallel::Collectives> collectives_;
};

}  // namespace gallop::app
