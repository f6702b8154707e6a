#include "gallop/app/table_recipe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/data/find.h"
#include "gallop/data/table.h"

namespace gallop::app {

namespace {

using PartFiles = std::array<std::vector<std::string>, data::kParts>;

PartFiles files_of(const std::string& path) {
  return data::find_part_shards("table", path, data::table_endings());
}

// A single quoted scalar of YAML.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "''" : std::string(1, c);
  return result + "'";
}

}  // namespace

bool is_table(const std::string& name_or_path) {
  if (data::is_table_file(name_or_path)) return true;
  // In the layout of Hugging Face datasets, the shards are in the folder "data".
  for (const fs::path& folder : {fs::path(name_or_path), fs::path(name_or_path) / "data"}) {
    if (!fs::is_directory(folder)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (!data::is_table_file(name)) continue;
      // "train.csv" or "train-00000-of-00002.parquet".
      if (name.starts_with("train.") || name.starts_with("train-")) return true;
    }
  }
  return false;
}

std::string name_of_table(const std::string& path) {
  const fs::path file = fs::path(path).lexically_normal();
  const std::string name = (file.has_filename() ? file : file.parent_path()).filename().string();
  return name.substr(0, name.find('.', 1));
}

std::string table_recipe(const std::string& path) {
  const PartFiles files = files_of(path);
  const int64_t rows = data::count_rows(files[0]);
  const bool has_parts = !files[1].empty() || !files[2].empty();
  constexpr double kValidation = 0.15;
  const auto trained = static_cast<double>(rows) * (has_parts ? 1 : 1 - kValidation);
  // Measured with benchmarks/tables: small tables need small batches and many epochs.
  constexpr double kEpochs = 980;
  constexpr int64_t kSmallest = 32, kLargest = 1024, kFewestEpochs = 4, kMostEpochs = 40;
  const double root = std::sqrt(std::max(trained, 1.0));
  const auto batch =
      std::clamp<int64_t>(int64_t{1} << std::llround(std::log2(root)), kSmallest, kLargest);
  const auto epochs = std::clamp<int64_t>(std::llround(kEpochs / root), kFewestEpochs, kMostEpochs);
  return fmt::format(R"(data:
  name: table
  path: {}
  batch_size: {}
  eval_batch: 2048
  validation: {}
model: {{name: tabular-mlp}}
optimizer: {{name: adamw, lr: 0.005, weight_decay: 0.01}}
schedule: {{name: cosine, warmup: 0.1}}
train:
  epochs: {}
  early_stopping: {{patience: {}, restore_best: true}}
)",
                     quoted(path), batch, has_parts ? 0.0 : kValidation, epochs,
                     std::max<int64_t>(5, epochs / 2));
}

}  // namespace gallop::app
