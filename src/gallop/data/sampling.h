#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/config/visitor.h"

namespace gallop::data {

class DataModule;
class Samples;

/// The section `data.sampling`: which training samples an epoch has.
struct SamplingConfig {
  std::string name = "uniform";
  double power = 1;
  std::vector<double> class_weights;  ///< Of `weighted`, one per class.
  std::string field;                  ///< Of `weighted`: the field with each sample's weight.
  int64_t draws = 0;                  ///< Samples of an epoch; 0: as many as there are.

  bool is_uniform() const { return name == "uniform"; }
  /// "class-balanced, power 0.5"
  std::string describe() const;
};

void visit(config::Visitor& visitor, SamplingConfig& config);

/// Throws UsageError for options that do not belong to the way of sampling.
void check(const SamplingConfig& config);

/// Replaces the training samples of a module by samples drawn with replacement: draw d of an epoch
/// is a function of (seed, epoch, d), and so is its augmentation, so that a sample that is drawn
/// twice is augmented in two ways. Other splits and DataModule::split() keep all samples. Throws
/// UsageError if samples have no classes or weights, DataError if weights are invalid.
void draw_training_samples(DataModule& module, const SamplingConfig& config, uint64_t seed);

/// The class label of each sample, read as cheaply as the samples allow. Throws UsageError if
/// targets are not one class label for each sample.
std::vector<int64_t> class_labels(const Samples& samples, int64_t classes);
/// The targets [N, ...] of at most `most` samples, evenly distributed; broken ones are left out.
at::Tensor some_targets(const Samples& samples, int64_t most);
/// The number of samples of each class.
std::vector<int64_t> count_classes(const Samples& samples, int64_t classes);

}  // namespace gallop::data
