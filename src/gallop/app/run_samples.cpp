#include "gallop/app/run_samples.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "gallop/app/batch_images.h"
#include "gallop/base/error.h"
#include "gallop/data/loader.h"
#include "gallop/data/png_writer.h"
#include "gallop/track/run_samples.h"

namespace gallop::app {

namespace {

constexpr size_t kMostTextBytes = 2000;

// Reads samples one by one in training order.
class Reader {
 public:
  Reader(const data::Samples& samples, data::LoaderConfig config, int64_t seed)
      : loader_(samples, one_by_one(std::move(config)), {.seed = seed}) {}

  // Nothing for a broken sample: training skips it as well, or fails.
  std::optional<data::Batch> next() {
    try {
      auto batch = loader_.next();
      if (batch->size() == 1) return batch;
    } catch (const DataError&) {
    }
    return std::nullopt;
  }

 private:
  static data::LoaderConfig one_by_one(data::LoaderConfig config) {
    config.batch = 1;
    config.threads = 0;
    config.pinned = false;
    config.part = 0;
    config.parts = 1;
    config.packs = false;
    return config;
  }

  data::Loader loader_;
};

// The names of the elements of a table's features: "size", "size missing", "built month",
// "kind=flat".
std::vector<std::string> number_names(const data::Signature& signature) {
  if (signature.features.empty()) return signature.columns;
  std::vector<std::string> names;
  for (const data::TableFeature& feature : signature.features) {
    if (feature.is_category()) continue;
    const bool is_missing = feature.kind == "missing";
    const std::string& part = is_missing ? feature.kind : feature.part;
    if (feature.kind != "one-hot") {
      names.push_back(feature.column + (part.empty() ? "" : " " + part));
      continue;
    }
    names.push_back(feature.column + " missing");
    for (const std::string& value : feature.categories)
      names.push_back(feature.column + "=" + value);
  }
  return names;
}

class Keeper {
 public:
  Keeper(const fs::path& run, const Session& session)
      : run_(run), folder_(track::run_samples_of(run)), session_(session) {}

  void keep(int64_t count) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);  // So that no list refers to older images.
    if (count == 0) return;
    make_folders(folder_);
    const data::DataModule& data = session_.data();
    const Recipe& recipe = session_.recipe();
    for (const auto& one : recipe.data.augment.items) kept_.augmented_by.push_back(one.name());
    Reader reader(*data.train, session_.training_loader(), recipe.train.seed);
    std::optional<Reader> plain;
    if (data.unaugmented) {
      plain.emplace(*data.unaugmented, session_.training_loader(), recipe.train.seed);
    }
    count = std::min({count, recipe.data.batch_size, data.train->size()});
    for (int64_t i = 0; i < count; ++i) {
      const auto sample = reader.next(), before = plain ? plain->next() : std::nullopt;
      if (!sample) continue;
      const data::Signature& signature = session_.inputs();
      if (signature.is_text()) {
        keep_text(*sample);
      } else if (signature.is_images()) {
        keep_image(*sample, before);
      } else {
        keep_numbers(*sample);
      }
    }
    track::write_run_samples(run_, kept_);
  }

 private:
  void keep_image(const data::Batch& sample, const std::optional<data::Batch>& before) {
    track::RunSamples::One one;
    one.label = label_of(sample);
    one.image = write_image(sample);
    if (before) one.before = write_image(*before);
    kept_.samples.push_back(std::move(one));
  }

  // The class name; other targets are not shown beside an image.
  std::string label_of(const data::Batch& sample) const {
    const at::Tensor& target = sample.target();
    const auto& classes = session_.inputs().classes;
    if (target.dim() != 1 || target.is_floating_point()) return {};
    const auto label = target[0].item<int64_t>();
    return label < 0 ? "(ignored)" : classes[static_cast<size_t>(label)];
  }

  // "age 0.31, income -1.2: price 4.5", as the model sees them.
  void keep_numbers(const data::Batch& sample) {
    const data::Signature& signature = session_.inputs();
    track::RunSamples::One one;
    at::Tensor views = sample.input()[0].to(at::kDouble).cpu();
    if (signature.views == 1) views = views.unsqueeze(0);
    for (int64_t view = 0; view < signature.views && one.text.size() < kMostTextBytes; ++view) {
      one.text += (view > 0 ? "\n" : "") + numbers_of(views[view], number_names(signature));
    }
    one.text += categories_of(sample);
    one.label = label_of(sample);
    kept_.samples.push_back(std::move(one));
  }

  static std::string numbers_of(at::Tensor features, const std::vector<std::string>& names) {
    while (features.dim() > 1) features = features[0];  // The first step of a sequence.
    std::string text;
    for (size_t i = 0; i < names.size() && text.size() < kMostTextBytes; ++i) {
      text += fmt::format("{}{} {:.4g}", i == 0 ? "" : ", ", names[i],
                          features[static_cast<int64_t>(i)].item<double>());
    }
    return text;
  }

  // ", kind flat", of the categories that are indices.
  std::string categories_of(const data::Batch& sample) const {
    const NamedTensors fields = sample.by_role();
    const at::Tensor* const indices = find_tensor(fields, "categories");
    std::string text;
    int64_t next = 0;
    for (const data::TableFeature& feature : session_.inputs().features) {
      if (!feature.is_category() || indices == nullptr) continue;
      const auto index = (*indices)[0][next++].item<int64_t>();
      text += fmt::format(
          ", {} {}", feature.column,
          index == 0 ? "(missing)" : feature.categories[static_cast<size_t>(index - 1)]);
    }
    return text;
  }

  // Without padding.
  void keep_text(const data::Batch& sample) {
    const data::Signature& signature = session_.inputs();
    const at::Tensor tokens = sample.input()[0];
    track::RunSamples::One one;
    if (signature.views == 1) {
      one.text = text_of(tokens);
      one.label = label_of(sample);
    } else {
      for (int64_t view = 0; view < tokens.size(1); ++view) {
        one.text += (view > 0 ? "\n" : "") + text_of(tokens.select(1, view));
      }
    }
    kept_.samples.push_back(std::move(one));
  }

  // The text of tokens [T].
  std::string text_of(const at::Tensor& tokens) const {
    const data::Signature& signature = session_.inputs();
    std::string text;
    for (int64_t i = 0; i < tokens.size(0) && text.size() < kMostTextBytes; ++i) {
      const auto token = tokens[i].item<int64_t>();
      if (token < 0) break;
      if (signature.unit == "words" && i > 0) text += ' ';
      text += data::from_hex(signature.vocabulary[static_cast<size_t>(token)]);
    }
    return text;
  }

  // Not synced, which would dominate the time; only the list is synced.
  std::string write_image(const data::Batch& sample) {
    const std::string name = fmt::format("{:02}.png", images_++);
    at::Tensor image = sample.input()[0];
    // Views are shown side by side.
    if (session_.inputs().views > 1) image = image.permute({1, 2, 0, 3}).flatten(2);
    FileWriter(folder_ / name).write(data::encode_png(image_of(image, session_.inputs())));
    return name;
  }

  fs::path run_, folder_;
  const Session& session_;
  int images_ = 0;
  track::RunSamples kept_;
};

}  // namespace

void keep_first_samples(const fs::path& run, const Session& session, int64_t count) {
  Keeper(run, session).keep(count);
}

}  // namespace gallop::app
