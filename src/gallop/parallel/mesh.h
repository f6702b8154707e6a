#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/parallel/collectives.h"

namespace gallop::parallel {

/// The processes of a training as a grid with named axes, from the slowest network to the fastest:
/// neighbors along the last axis have consecutive ranks (as torch.distributed.device_mesh). The
/// product of the sizes is the number of processes.
class DeviceMesh {
 public:
  struct Axis {
    std::string name;
    int size = 1;
  };

  /// The axes that strategies use, in this order; an axis that is not used has size 1: pipeline
  /// stages, replicas, shards of data-parallel state, parts of the sequence, parts of tensors.
  static constexpr const char* kAxes[] = {"pp", "dp_replicate", "dp_shard", "cp", "tp"};

  /// Throws UsageError if the product of the sizes is not `processes`, a size is below 1, or two
  /// axes have one name.
  DeviceMesh(std::vector<Axis> axes, int processes);

  int size() const { return size_; }
  const std::vector<Axis>& axes() const { return axes_; }
  /// The size of an axis. Throws InternalError for an unknown name, as the functions below.
  int size(const std::string& axis) const { return axes_[index_of(axis)].size; }
  /// The position of a rank along an axis.
  int coordinate(int rank, const std::string& axis) const;
  /// The ranks that differ from `rank` along these axes only, in ascending order; `rank` is one of
  /// them.
  std::vector<int> group_of(int rank, const std::vector<std::string>& axes) const;

  /// The process group of these ranks, named after the axes, such as "dp_shard,cp". All processes
  /// call it together; `collectives` are those of all of them, and must outlive the group.
  std::unique_ptr<Collectives> group(Collectives& collectives,
                                     const std::vector<std::string>& axes) const;

 private:
  size_t index_of(const std::string& axis) const;
  /// The distance of two ranks that are neighbors along the axis.
  int stride(size_t axis) const;

  std::vector<Axis> axes_;
  int size_;
};

}  // namespace gallop::parallel
