#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/base/named_files.h"
#include "gallop/config/component.h"
#include "gallop/data/augment.h"
#include "gallop/data/part.h"
#include "gallop/data/samples.h"
#include "gallop/data/signature.h"

namespace gallop::data {

class BatchPlan;
class SharedData;
struct DataConfig;
struct DataQuality;
struct DataReport;

/// Inputs of open_data() besides the recipe's section.
struct OpenOptions {
  uint64_t seed = 0;  ///< Seed of the split, the text windows and the augmentations.
  int cores = 1;
  int64_t memory_bytes = 0;  ///< Memory of the machine; a quarter may hold decoded images.
  /// Processes that share `memory_bytes`, equally divided for data that is not in `shared`.
  int memory_parts = 1;
  std::shared_ptr<SharedData> shared{};                  ///< Data of other processes; null: none.
  fs::path cache_folder;                                 ///< For statistics: user_cache_folder().
  c10::ScalarType image_dtype = c10::ScalarType::Float;  ///< Float or BFloat16.
  /// The signature of a trained model that will read the data. Separate texts then use its
  /// vocabulary and classes instead of their own. Null if there is no such model.
  const Signature* trained = nullptr;
};

/// The inputs for opening a data module: the recipe's section and properties of the machine.
struct DataContext {
  const DataConfig& config;
  const AugmentationRegistry& augmentations;
  const OpenOptions& options;
  /// If false, the data is only read, for inspect() and samples_for(): the splits may stay null and
  /// images may have any size.
  bool builds_samples = true;
};

/// An opened data set: the samples of its splits and their signature. Built-in and user-defined
/// formats are registered in the same way and may derive from this class to report more.
class DataModule {
 public:
  DataModule() = default;
  virtual ~DataModule() = default;
  DataModule(const DataModule&) = delete;
  DataModule& operator=(const DataModule&) = delete;

  Signature signature;
  /// The batches of the training samples; null if all have `data.batch_size` samples.
  std::shared_ptr<const BatchPlan> batches;
  std::unique_ptr<Samples> train;        ///< Training samples, augmented.
  std::unique_ptr<Samples> unaugmented;  ///< Not augmented; null if there are no augmentations.
  std::unique_ptr<Samples> validation;   ///< Null if there is none.
  std::unique_ptr<Samples> test;         ///< Null if there is none.
  bool held_out = false;           ///< The module has split the validation samples off by itself.
  bool excluded = false;           ///< The module has applied `data.exclude` by itself.
  std::vector<std::string> files;  ///< The files that were read, for the run's identity.
  std::vector<std::string> notes;  ///< Remarks for the user that are not errors.

  /// Files that `files` name, such as the images of a table. None by default.
  virtual std::vector<NamedFiles> named_files() const { return {}; }

  /// The split to evaluate on while training: validation, else test, else null.
  const Samples* evaluation() const { return validation ? validation.get() : test.get(); }
  /// The samples of a split without augmentation; null if there is none.
  const Samples* split(Part part) const;

  /// Returns a summary of the data for the user and may read all of it. The default reports the
  /// number of samples of each split.
  virtual DataReport inspect(int threads) const;

  /// Looks for defects of the data: duplicates, leakage, outliers, classes out of balance. The
  /// default compares whole samples. May read all of it.
  virtual DataQuality check_quality(int threads) const;

  /// A split prepared for a model that was trained on data of this signature; its targets may be
  /// meaningless. Null if there is none. The default is split().
  virtual const Samples* samples_for(Part part, const Signature& trained);

 protected:
  /// Frees the samples; for destructors of modules that own what the samples read.
  void release_samples();
};

/// Data modules by name, each for a data set or a file format.
using DataModuleRegistry = config::Registry<DataModule, const DataContext&>;
DataModuleRegistry built_in_data_modules();

/// Opens the data set named in the config. If it has no validation split, the fraction
/// `data.validation` of the training samples becomes one. Throws UsageError and DataError.
std::unique_ptr<DataModule> open_data(const DataConfig& config, const DataModuleRegistry& modules,
                                      const AugmentationRegistry& augmentations,
                                      const OpenOptions& options);

/// Like open_data(), but without samples, for DataModule::inspect() and samples_for().
std::unique_ptr<DataModule> read_data(const DataConfig& config, const DataModuleRegistry& modules,
                                      const AugmentationRegistry& augmentations,
                                      const OpenOptions& options);

/// Resolves `data.task` against `tasks`, the tasks that the data set supports; auto selects the
/// first. Throws UsageError if the task is not supported.
std::string choose_task(const DataConfig& config, const std::vector<std::string>& tasks);

}  // namespace gallop::data
