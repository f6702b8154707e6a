#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/config/component.h"
#include "gallop/data/augment.h"
#include "gallop/data/part.h"
#include "gallop/data/report.h"
#include "gallop/data/samples.h"
#include "gallop/data/shared_data.h"
#include "gallop/data/signature.h"

namespace gallop::data {

struct DataConfig;

/// What open_data() needs to know besides the recipe's section.
struct OpenOptions {
  uint64_t seed = 0;  ///< Of the split, the windows of a text and the augmentations.
  int cores = 1;
  int64_t memory_bytes = 0;  ///< Of the machine; a quarter may hold decoded images.
  /// How many processes share that; each has such a part for what is not in `shared`.
  int memory_parts = 1;
  std::shared_ptr<SharedData> shared{};                  ///< With other processes; null: nothing.
  fs::path cache_folder;                                 ///< For statistics, user_cache_folder().
  c10::ScalarType image_dtype = c10::ScalarType::Float;  ///< Or BFloat16.
  /// Of a model that is to see the data: separate texts have its vocabulary and its classes, not
  /// their own. Null where there is none.
  const Signature* trained = nullptr;
};

/// What a data module is opened with: the recipe's section and what is known of the machine.
struct DataContext {
  const DataConfig& config;
  const AugmentationRegistry& augmentations;
  const OpenOptions& options;
  /// Else the data are only read, for inspect() and samples_for(): the splits may stay null, and
  /// images may be of any size.
  bool builds_samples = true;
};

/// An opened data set: the samples of its splits, and what they mean. Built-in formats and a user's
/// own are registered alike. One with more to say of itself derives from it.
class DataModule {
 public:
  DataModule() = default;
  virtual ~DataModule() = default;
  DataModule(const DataModule&) = delete;
  DataModule& operator=(const DataModule&) = delete;

  Signature signature;
  std::unique_ptr<Samples> train;        ///< Augmented.
  std::unique_ptr<Samples> unaugmented;  ///< The same as they are; null where nothing is augmented.
  std::unique_ptr<Samples> validation;   ///< Null where there is none.
  std::unique_ptr<Samples> test;         ///< Null where there is none.
  std::vector<std::string> files;        ///< What was read, for the run's identity.
  std::vector<std::string> notes;        ///< What a person should know though it is no error.

  /// The split to evaluate on while training: validation, else test, else null.
  const Samples* evaluation() const { return validation ? validation.get() : test.get(); }
  /// As they are, without augmentation; null where there is none.
  const Samples* split(Part part) const;

  /// What a person wants to know before training on it; may read all of it. By default the number
  /// of samples of each split.
  virtual DataReport inspect(int threads) const;

  /// A split as a model takes it that was trained on data of this signature; its targets may have
  /// no meaning. Null where there is none. By default split().
  virtual const Samples* samples_for(Part part, const Signature& trained);

 protected:
  /// For a destructor of what the splits read.
  void release_samples();
};

/// Data modules by name: a name stands for a data set or for a file format.
using DataModuleRegistry = config::Registry<DataModule, const DataContext&>;
DataModuleRegistry built_in_data_modules();

/// Opens the data set that the config names. Where it has no validation split, `data.validation` of
/// the training samples become one. Throws UsageError and DataError.
std::unique_ptr<DataModule> open_data(const DataConfig& config, const DataModuleRegistry& modules,
                                      const AugmentationRegistry& augmentations,
                                      const OpenOptions& options);

/// The same without samples, for DataModule::inspect() and samples_for().
std::unique_ptr<DataModule> read_data(const DataConfig& config, const DataModuleRegistry& modules,
                                      const AugmentationRegistry& augmentations,
                                      const OpenOptions& options);

/// Throws UsageError where `data.task` is neither auto nor one of these, the tasks that the data
/// set is for; returns the one that is meant: the first for auto.
std::string choose_task(const DataConfig& config, const std::vector<std::string>& tasks);

}  // namespace gallop::data
