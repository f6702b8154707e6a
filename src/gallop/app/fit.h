#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gallop/app/registries.h"
#include "gallop/data/samples.h"
#include "gallop/data/signature.h"
#include "gallop/model/model.h"
#include "gallop/train/observer.h"

namespace gallop {

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

/// A loss function: the sum over the samples of a batch, of one loss each; Gallop divides it by the
/// number of samples. A sample with several targets, such as tokens, counts once: return the mean
/// over its targets. `batch` contains "input", "target", and the further fields of the samples by
/// name: *find_tensor(batch, "target").
using LossFunction =
    std::function<at::Tensor(const at::Tensor& outputs, const NamedTensors& batch)>;

struct TrainerOptions {
  std::string name = "fit";  ///< Run name; its folder is `runs`/`name`.
  std::string runs = "runs";
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
  /// `registries`: additional components for the recipe.
  explicit Trainer(TrainerOptions options, Registries registries = {});

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
  Registries registries_;
};

}  // namespace gallop
