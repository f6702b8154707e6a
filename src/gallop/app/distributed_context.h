#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "gallop/launch/world.h"
#include "gallop/parallel/collectives.h"

namespace gallop::app {

/// Throws UsageError where this process is one of several: each would do the same work.
void require_alone(const char* command);

/// Lets this process have its part of the cores of its host, where whatever has started several
/// there has not bound them to some.
void pin_to_local_cores(const launch::World& world);

/// The processes of a training, of which this is one. Alone there are no collectives.
class DistributedContext {
 public:
  /// Of the processes that torchrun, Open MPI, srun, PMI or 'gallop launch' has started together
  /// (see launch/world.h): shares out the cores of a host where the starter did not, and waits for
  /// all to come. Throws UsageError where the environment contradicts itself, DeviceError where
  /// others do not come.
  static DistributedContext join();

  bool is_alone() const { return collectives_ == nullptr; }
  bool is_first() const { return is_alone() || collectives_->rank() == 0; }
  int rank() const { return is_alone() ? 0 : collectives_->rank(); }
  int size() const { return is_alone() ? 1 : collectives_->size(); }
  /// On this process's host.
  int local_size() const { return world_.local_size; }
  parallel::Collectives* collectives() const { return collectives_.get(); }

  /// For the environment of processes that those of this team start, one each: these are a team,
  /// too, and meet in the same store. `name` tells one such team from the next. Empty where alone.
  std::map<std::string, std::string> variables_of_children(const std::string& name) const;

  /// What the function returns in the first process, in all; see parallel::run_on_rank0().
  std::string run_on_rank0(const std::function<std::string()>& function) const;

 private:
  launch::World world_;
  std::unique_ptr<parallel::Collectives> collectives_;
};

}  // namespace gallop::app
