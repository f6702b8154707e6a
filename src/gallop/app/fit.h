#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gallop/data/function_samples.h"
#include "gallop/data/samples.h"
#include "gallop/data/signature.h"
#include "gallop/tensor/named_tensor.h"
#include "gallop/train/outcome.h"

namespace gallop::model {
class Model;
}

namespace gallop {

struct Registries;

/// The data of a program.
struct FitData {
  data::Signature signature;  ///< At least the task, and the names of classes or targets.
  std::shared_ptr<const data::Samples> train;
  std::shared_ptr<const data::Samples> validation{};  ///< May be null, like the test samples.
  std::shared_ptr<const data::Samples> test{};
};

/// Regression: inputs [N, ...] and targets [N] or [N, D], float.
FitData regression_data(const at::Tensor& inputs, const at::Tensor& targets);
/// Classification: inputs [N, ...], labels int64 [N] below `classes`.
FitData classification_data(const at::Tensor& inputs, const at::Tensor& labels, int64_t classes);

using data::Sample;
using data::SampleFunction;

/// `size` samples that are computed when they are read, all with the sizes and types of the first.
/// With `classes`, targets are their labels, int64 []; otherwise numbers, float [] or [D]. Calls
/// the function for sample 0 of epoch 0. Throws UsageError for tensors or targets that it cannot
/// train on; a later sample that differs from the first is a DataError.
FitData computed_data(int64_t size, const SampleFunction& function,
                      std::vector<std::string> classes = {});

/// A loss function: the sum over the samples of a batch, of one loss each; Gallop divides it by the
/// number of samples. A sample with several targets, such as tokens, counts once: return the mean
/// over its targets. `batch` contains "input", "target", and the further fields of the samples by
/// name: *find_tensor(batch, "target").
using LossFunction =
    std::function<at::Tensor(const at::Tensor& outputs, const NamedTensors& batch)>;

struct TrainerOptions {
  std::string name = "fit";  ///< Run name; its folder is `runs`/`name`.
  std::string runs = "runs";
  /// Options as on the command line of `gallop train`, such as "optimizer.lr=0.1", which replace
  /// those of the recipe.
  std::vector<std::string> overrides{};
  /// Sections of a recipe as YAML, without model, data and loss: "optimizer: {name: adamw, lr:
  /// 0.01}\ntrain: {epochs: 20}\ndata: {batch_size: 64}". Paths in it, such as those of plug-ins,
  /// must be absolute.
  std::string recipe;
  bool quiet = false;  ///< Only print the final table.
};

/// Trains a program's own model on its own samples like `gallop train`: with console output, a run
/// folder, checkpoints, the step compiler, and distributed if the environment says so (torchrun,
/// mpirun, srun). An interrupted run of the same name is resumed; a finished one is kept.
class Trainer {
 public:
  explicit Trainer(TrainerOptions options);
  /// `registries`: additional components for the recipe (gallop/app/registries.h).
  Trainer(TrainerOptions options, Registries registries);

  /// Trains a module with a member forward() from a batch of inputs to outputs, such as one of
  /// LibTorch's, and leaves the final weights in it. Without `loss`, the recipe's or the task's is
  /// used. `finished` of the result is false if a signal stopped it. Throws UsageError for an
  /// invalid recipe, and the errors of data and devices.
  template <typename Module>
  train::Outcome fit(std::shared_ptr<Module> module, const FitData& data, LossFunction loss = {});

  /// The same for any kind of model; `make` is called once.
  train::Outcome fit_model(std::function<std::unique_ptr<model::Model>()> make, const FitData& data,
                           LossFunction loss = {});

 private:
  TrainerOptions options_;
  std::shared_ptr<const Registries> registries_;
};

/// Runs what a program does and returns the exit code for its main(): 0 if the run is finished, 5
/// if it was stopped and can be resumed. Errors are printed as by `gallop`, in distributed training
/// once, and return their code.
int run_main(const std::function<train::Outcome()>& program);

}  // namespace gallop
