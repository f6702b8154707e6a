#pragma once

#include <cstdint>
#include <vector>

#include "gallop/tune/samplers/parzen_axes.h"

namespace gallop::tune {

/// Choices: the kernel of a choice is the prior, with a share that falls as there are more, and
/// this choice.
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

  /// Multiplies the weight of each kernel by how likely it makes this choice beside its own; that
  /// of the prior stays.
  void weigh(std::vector<double>& weights, double value) const;

 private:
  Choices choices_;
  std::vector<double> prior_;    // Of each choice, summing to 1.
  std::vector<int32_t> chosen_;  // By trial; for the prior their count.
  double prior_share_ = 1;       // In the kernel of a choice.
};

}  // namespace gallop::tune
