#include "gallop/data/data_module.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/batch_plan.h"
#include "gallop/data/block_order.h"
#include "gallop/data/data_config.h"
#include "gallop/data/exclusion.h"
#include "gallop/data/length_order.h"
#include "gallop/data/quality/data_quality.h"
#include "gallop/data/quality/sample_quality.h"
#include "gallop/data/report.h"
#include "gallop/data/sampling.h"
#include "gallop/data/shared_data.h"
#include "gallop/data/split.h"

namespace gallop::data {

const Samples* DataModule::split(Part part) const {
  if (part == Part::kValidation) return validation.get();
  if (part == Part::kTest) return test.get();
  return unaugmented ? unaugmented.get() : train.get();
}

DataReport DataModule::inspect(int /*threads*/) const {
  DataReport report;
  report.notes = notes;
  report.class_names = signature.classes;
  for (size_t i = 0; i < kParts; ++i) {
    const Samples* const samples = split(static_cast<Part>(i));
    if (samples != nullptr) report.others.push_back({kPartNames[i], samples->size()});
  }
  return report;
}

DataQuality DataModule::check_quality(int /*threads*/) const { return check_samples(*this); }

const Samples* DataModule::samples_for(Part part, const Signature& /*trained*/) {
  return split(part);
}

void DataModule::release_samples() {
  for (auto* samples : {&train, &unaugmented, &validation, &test}) samples->reset();
}

std::unique_ptr<DataModule> read_data(const DataConfig& config, const DataModuleRegistry& modules,
                                      const AugmentationRegistry& augmentations,
                                      const OpenOptions& options) {
  auto module = modules.build(config.module, {.config = config,
                                              .augmentations = augmentations,
                                              .options = options,
                                              .builds_samples = false});
  if (!module->excluded) exclude_samples(*module, config.exclude);
  return module;
}

std::unique_ptr<DataModule> open_data(const DataConfig& config, const DataModuleRegistry& modules,
                                      const AugmentationRegistry& augmentations,
                                      const OpenOptions& options) {
  const Holdout holdout = holdout_of(config, options.seed);
  auto module = modules.build(
      config.module, {.config = config, .augmentations = augmentations, .options = options});
  if (!module->train) {
    throw DataError(fmt::format("data set '{}' has no training split", config.module.name()));
  }
  Signature& signature = module->signature;
  signature.padded = module->train->fields().input().padding.has_value();
  if (signature.separate_texts && (signature.unit.empty() || signature.vocabulary.empty())) {
    throw UsageError(fmt::format(
        "data set '{}' has separate texts, but its signature declares no {}; set unit to "
        "characters, bytes or words, and vocabulary to its tokens, an unknown one first",
        config.module.name(), signature.unit.empty() ? "unit" : "vocabulary"));
  }
  if (!module->held_out && holds_out(holdout, module->validation != nullptr)) {
    cut_validation(*module, holdout);
  }
  // After the validation split, which is the same with and without exclusions.
  if (!module->excluded) exclude_samples(*module, config.exclude);
  draw_training_samples(*module, config.sampling, options.seed);
  check_packing(*module, config);
  if (config.eval_stride != 0 && !signature.is_text()) {
    throw UsageError(
        fmt::format("data.eval_stride is for running text, and the data set '{}' is of "
                    "{}; omit it",
                    config.module.name(), signature.kind));
  }
  if (config.max_tokens > 0) {
    limit_tokens(*module, config, options.seed);
  } else if (config.group_by_length) {
    group_by_length(*module, config, options.seed);
  } else {
    order_by_blocks(*module, config, options.seed);
  }
  if (config.threads > options.cores) {
    module->notes.push_back(
        fmt::format("data.threads is {} on {} cores: more threads than cores only "
                    "take turns",
                    config.threads, options.cores));
  }
  if (options.shared && !options.shared->trouble().empty()) {
    module->notes.push_back("data are not shared with other trainings: " +
                            options.shared->trouble());
  }
  return module;
}

std::string choose_task(const DataConfig& config, const std::vector<std::string>& tasks) {
  if (config.task == "auto") return tasks.front();
  if (std::find(tasks.begin(), tasks.end(), config.task) != tasks.end()) return config.task;
  throw UsageError(fmt::format("data.task is {}, but data set '{}' is for {}",
                               printable(config.task), config.module.name(),
                               join_names(tasks, "and")));
}

}  // namespace gallop::data
