#include "gallop/app/pinned_options.h"

#include <utility>

#include <fmt/format.h>

#include "gallop/optimize/experiments.h"

namespace gallop::app {

std::vector<std::string> pinned_options(const ResolvedRecipe& open,
                                        std::vector<std::string> options,
                                        const PinnedValues& values) {
  const train::TrainConfig& train = open.recipe.train;
  const auto pin = [&](bool is_open, const std::string& option) {
    if (is_open) options = optimize::with(std::move(options), {option});
  };
  pin(train.precision == "auto", "train.precision=" + values.precision);
  pin(train.channels_last == "auto", fmt::format("train.channels_last={}", values.channels_last));
  // The default is that of the data's task.
  pin(!values.loss.empty() && values.loss != open.recipe.loss.name(), "train.loss=" + values.loss);
  pin(open.is_auto("data", "batch_size"), fmt::format("data.batch_size={}", values.batch_size));
  pin(open.is_auto("optimizer", "lr"), fmt::format("optimizer.lr={}", values.lr));
  return options;
}

}  // namespace gallop::app
