#pragma once

#include <map>
#include <string>

#include "gallop/parallel/collectives.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// Which process of a pipeline has the trained value of each tensor.
struct TensorOwners {
  std::map<std::string, int> ranks;  ///< By the names of parameters and buffers.
  /// Parameters that another process reads as well, and which one.
  std::map<std::string, int> readers{};
};

/// The tensors of a model, of which each process of a pipeline trains those of its stages.
class StageParameters {
 public:
  /// `statistics`: the buffers that steps write. `collectives`, of the pipeline, must outlive it.
  StageParameters(NamedTensors parameters, NamedTensors statistics, TensorOwners owners,
                  Collectives& collectives);

  const NamedTensors& parameters() const { return parameters_; }
  Collectives& collectives() const { return collectives_; }
  /// The rank in the pipeline that has this parameter or buffer.
  int owner_of(const std::string& name) const { return owners_.ranks.at(name); }
  bool is_here(const std::string& name) const { return owner_of(name) == collectives_.rank(); }

  /// Gives each process the values of all parameters and statistics.
  void gather();
  /// Whether each process still has them: no step has begun since.
  bool are_gathered() const { return are_gathered_; }
  void begin_step() { are_gathered_ = false; }
  /// Gives the values of parameters that a second process reads to that. Recorded in steps.
  void send_to_readers();

 private:
  NamedTensors parameters_, statistics_;
  TensorOwners owners_;
  Collectives& collectives_;
  bool are_gathered_ = false;
};

}  // namespace gallop::parallel
