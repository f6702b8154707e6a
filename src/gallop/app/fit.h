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

/// What a program trains on.
struct FitData {
  data::Signature signature;  ///< At least its task, and the names of classes or targets.
  std::shared_ptr<const data::Samples> train;
  std::shared_ptr<const data::Samples> validation{};  ///< May be null, as the test samples.
  std::shared_ptr<const data::Samples> test{};
};

/// Numbers to predict: inputs [N, ...] and targets [N] or [N, D], float.
FitData regression_data(const at::Tensor& inputs, const at::Tensor& targets);
/// Class labels: inputs [N, ...], labels int64 [N] below `classes`.
FitData classification_data(const at::Tensor& inputs, const at::Tensor& labels, int64_t classes);

/// A loss as a function: the sum over the targets of a batch. `batch` has "input", "target", and
/// the further fields of the samples by their names.
using LossFunction =
    std::function<at::Tensor(const at::Tensor& outputs, const NamedTensors& batch)>;

struct TrainerOptions {
  std::string name = "fit";  ///< Of the run; its folder is `runs`/`name`.
  std::string runs = "runs";
  /// Sections of a recipe as YAML, but for what the program gives itself: "optimizer: {name: adamw,
  /// lr: 0.01}\ntrain: {epochs: 20}\ndata: {batch_size: 64}".
  std::string recipe;
  bool quiet = false;  ///< Only the table at the end.
};

/// Trains a program's own model on its own samples as `gallop train` does: with its console, a run
/// folder, checkpoints, the step compiler, and with other processes where the environment names
/// them (torchrun, mpirun and srun start them). A run of the same name that was interrupted is
/// resumed; one that is finished stays as it is.
class Trainer {
 public:
  /// `registries`: further components that the recipe may name.
  explicit Trainer(TrainerOptions options, Registries registries = {});

  /// Trains a module with a member forward() from a batch of inputs to outputs, such as one of
  /// LibTorch's, and leaves the last weights in it. Without `loss` it is that of the task or of the
  /// recipe. Returns what happened; `finished` is false where a signal stopped it. Throws
  /// UsageError for a wrong recipe, and the errors of data and devices.
  template <typename Module>
  train::Outcome fit(std::shared_ptr<Module> module, const FitData& data, LossFunction loss = {});

  /// The same for a model of any kind; `make` is called once.
  train::Outcome fit_model(std::function<std::unique_ptr<model::Model>()> make, const FitData& data,
                           LossFunction loss = {});

 private:
  TrainerOptions options_;
  Registries registries_;
};

}  // namespace gallop
