#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
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
  /// stages, replicas, shards of data-parallel state, parts of the sequence, parts of tensors,
  /// parts of the experts.
  static constexpr const char* kAxes[] = {"pp", "dp_replicate", "dp_shard", "cp", "tp", "ep"};

  /// Throws UsageError if the product of the sizes is not `processes`, a size is below 1, or two
  /// axes have one name.
  DeviceMesh(std::vector<Axis> axes, int processes);

  int size() const { return size_; }
  const std::vector<Axis>& axes() const { return axes_; }
  /// The size of an axis: 1 for one of kAxes that this mesh lacks. Throws InternalError for another
  /// name; the functions below throw it for each axis that the mesh lacks.
  int size(const std::string& axis) const;
  /// "pp 2 x dp_replicate 2": the axes of more than one process; empty for fewer than two of them.
  std::string describe() const;
  /// The position of a rank along an axis.
  int coordinate(int rank, const std::string& axis) const;
  /// The part of every batch that a rank computes, and their number: along dp_replicate, dp_shard
  /// and ep. Ranks that differ along other axes have the same.
  struct BatchPart {
    int part = 0, parts = 1;
  };
  BatchPart batch_part(int rank) const;
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

/// The axes of DeviceMesh::kAxes that strategies combine.
inline constexpr const char *kPipelineAxis = "pp", *kReplicaAxis = "dp_replicate",
                            *kShardAxis = "dp_shard", *kContextAxis = "cp", *kTensorAxis = "tp",
                            *kExpertAxis = "ep";

/// The process groups of a mesh, each made when it is first asked for, by all processes together.
class MeshGroups {
 public:
  /// `all` must outlive it.
  MeshGroups(DeviceMesh mesh, Collectives& all) : mesh_(std::move(mesh)), all_(all) {}

  const DeviceMesh& mesh() const { return mesh_; }
  Collectives& all() const { return all_; }
  /// The processes along some axes, as DeviceMesh::group(): `all` if the axes have all of them, so
  /// that a mesh of one axis needs no further connections. Axes of one process count as missing.
  Collectives& along(const std::vector<std::string>& axes);

 private:
  DeviceMesh mesh_;
  Collectives& all_;
  std::map<std::vector<std::string>, std::unique_ptr<Collectives>> groups_;
};

/// The degree of an axis as a recipe asks for it: 0 for all processes.
struct DegreeOption {
  std::string name;  ///< "parallel.tensor_parallel_degree".
  int64_t asked = 0;
};

/// The number of processes along an axis, of `processes`. A single process is always one. With
/// `inner`, another axis has `inner_degree` of the processes for each of these. Throws UsageError,
/// with the nearest numbers, if it is 1 or does not divide the processes.
int degree_of(const DegreeOption& option, int processes, const DegreeOption& inner = {},
              int inner_degree = 1);

}  // namespace gallop::parallel
