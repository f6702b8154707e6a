#pragma once

#include <cstdint>
#include <vector>

#include "gallop/tune/samplers/parzen_axes.h"

namespace gallop::tune {

/// A categorical axis: the kernel of a choice mixes the prior, with a weight that falls with the
/// number of kernels, and the indicator of this choice.
class ChoiceAxis final : public ParzenAxis {
 public:
  explicit ChoiceAxis(const Choices& choices);

  void insert(size_t position, int64_t trial, double value) override;
  void erase(size_t position, int64_t trial) override;
  void refresh(const std::vector<int64_t>& trials, double narrowing) override;
  std::vector<double> kernel(size_t position) const override;
  double draw(size_t kernel, Random& random) const override;
  void describe(KernelColumns& columns, std::vector<double>& constants) const override;
  void describe(KernelQuery& query, double value) const override;

  /// Multiplies the weight of each kernel by the probability of this choice, relative to that of
  /// its own choice; the prior's weight is unchanged.
  void weigh(std::vector<double>& weights, double value) const;

 private:
  Choices choices_;
  std::vector<double> prior_;    // Prior probability of each choice.
  std::vector<int32_t> chosen_;  // Choice by trial; the number of choices for the prior.
  double prior_share_ = 1;       // Weight of the prior in each kernel.
};

}  // namespace gallop::tune
