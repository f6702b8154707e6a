#include "gallop/app/prediction_printer.h"

#include <algorithm>

#include <ATen/ops/argmax.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cosine_similarity.h>
#include <ATen/ops/max.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gallop/app/json_line.h"
#include "gallop/app/print.h"
#include "gallop/base/defined_text.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/data/png_writer.h"
#include "gallop/train/losses/ctc.h"

namespace gallop::app {

using Form = train::Prediction::Form;

namespace {

std::string percent(double fraction) { return defined_text(100 * fraction, "{:5.1f} %"); }

}  // namespace

std::vector<double> numbers_of(const data::Signature& inputs, const at::Tensor& outputs) {
  const at::Tensor wide = outputs.to(at::kDouble).contiguous().view(-1);
  const double* const begin = wide.const_data_ptr<double>();
  std::vector<double> values(begin, begin + wide.numel());
  if (inputs.target_mean.empty()) return values;
  const size_t each = std::max<size_t>(1, inputs.target_outputs.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t target = i / each % inputs.targets.size();
    values[i] = values[i] * inputs.target_deviation[target] + inputs.target_mean[target];
  }
  return values;
}

fs::path mask_file(const std::string& folder, const std::string& image) {
  return fs::path(folder) / (fs::path(image).stem().string() + ".png");
}

PredictionPrinter::PredictionPrinter(const data::Signature& inputs, const train::Task& task,
                                     const PredictRequest& request)
    : inputs_(inputs), task_(task), request_(request) {
  const bool has_masks = task.prediction.form == Form::kClassPerElement;
  if (!request.output.empty() && has_masks) make_folders(request.output);
}

void PredictionPrinter::print(const std::string& name, const at::Tensor& outputs) const {
  const at::Tensor shown = task_.prediction.shown(outputs);
  switch (task_.prediction.form) {
    case Form::kClass: return print_classes(name, at::softmax(shown, 0));
    case Form::kLabels: return print_labels(name, shown.sigmoid());
    case Form::kNumbers: return print_numbers(name, shown);
    case Form::kClassPerElement: return print_mask(name, shown.argmax(0));
    case Form::kSequence: return print_sequence(name, shown);
    case Form::kEmbeddings: return print_embeddings(name, shown);
    case Form::kNextToken:
    case Form::kMaskedTokens: break;
  }
  throw InternalError(fmt::format("task '{}' predicts tokens of a text", printable(task_.name)));
}

void PredictionPrinter::print_text(const std::string& name, const std::vector<std::string>& tokens,
                                   const at::Tensor& outputs) const {
  if (task_.prediction.form != Form::kClassPerElement) return print(name, outputs);
  print_tags(name, tokens, task_.prediction.shown(outputs));
}

void PredictionPrinter::print_tags(const std::string& name, const std::vector<std::string>& tokens,
                                   const at::Tensor& logits) const {
  const auto [probabilities, classes] = at::softmax(logits, 1).max(1);
  nlohmann::ordered_json object{{"file", name}, {"tokens", nlohmann::json::array()}};
  if (!request_.json) fmt::print("{}\n", printable(name));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const std::string& tag = inputs_.classes[static_cast<size_t>(classes[at].item<int64_t>())];
    const auto probability = probabilities[at].item<double>();
    if (request_.json) {
      object["tokens"].push_back(
          {{"token", tokens[i]}, {"class", tag}, {"probability", probability}});
    } else {
      fmt::print("  {:<24} {:<12} {}\n", printable(tokens[i]), printable(tag),
                 percent(probability));
    }
  }
  if (request_.json) fmt::print("{}\n", json_line(object));
}

// Prints names of one character as a text.
void PredictionPrinter::print_sequence(const std::string& name, const at::Tensor& logits) const {
  const at::Tensor decoded = train::greedy_decode(logits.unsqueeze(0), inputs_.blank).squeeze(0);
  std::vector<std::string> classes;
  for (int64_t i = 0; i < decoded.size(0); ++i) {
    const auto index = decoded[i].item<int64_t>();
    if (index == data::kIgnoredTarget) break;
    classes.push_back(inputs_.classes[static_cast<size_t>(index)]);
  }
  if (request_.json) {
    fmt::print("{}\n", json_line(nlohmann::ordered_json{{"file", name}, {"classes", classes}}));
    return;
  }
  const bool is_text = std::all_of(classes.begin(), classes.end(),
                                   [](const std::string& one) { return one.size() == 1; });
  fmt::print("{}  {}\n", printable(name),
             printable(fmt::format("{}", fmt::join(classes, is_text ? "" : " "))));
}

void PredictionPrinter::print_embeddings(const std::string& name,
                                         const at::Tensor& embeddings) const {
  nlohmann::ordered_json object{{"file", name}};
  std::string line;
  if (embeddings.size(0) == 2) {
    const at::Tensor both = embeddings.to(at::kDouble);
    const auto similarity = at::cosine_similarity(both[0], both[1], 0).item<double>();
    object["cosine_similarity"] = similarity;
    line = fmt::format("  cosine similarity {}", defined_text(similarity, "{:.4f}"));
  }
  std::vector<std::vector<double>> all;
  for (int64_t view = 0; view < embeddings.size(0); ++view) {
    all.emplace_back();
    for (int64_t i = 0; i < embeddings.size(1); ++i) {
      all.back().push_back(embeddings[view][i].item<double>());
    }
  }
  if (all.size() == 1) {
    object["embedding"] = all.front();
    for (const double value : all.front()) line += " " + defined_text(value, "{:.6g}");
  } else {
    object["embeddings"] = all;
  }
  if (request_.json) {
    fmt::print("{}\n", json_line(object));
  } else {
    fmt::print("{}{}\n", printable(name), line);
  }
}

void PredictionPrinter::print_broken(const std::string& name, const char* reason) const {
  if (request_.json) {
    fmt::print("{}\n", json_line(nlohmann::ordered_json{{"file", name}, {"error", reason}}));
  } else {
    print_error("gallop: {}\n", reason);
  }
}

void PredictionPrinter::print_classes(const std::string& name,
                                      const at::Tensor& probabilities) const {
  const at::Tensor order = probabilities.argsort(0, true);
  nlohmann::ordered_json object{{"file", name}, {"guesses", nlohmann::json::array()}};
  if (!request_.json) fmt::print("{}\n", printable(name));
  for (int64_t i = 0; i < std::min<int64_t>(request_.top, order.size(0)); ++i) {
    const auto index = order[i].item<int64_t>();
    print_fraction(inputs_.classes[static_cast<size_t>(index)], "probability",
                   probabilities[index].item<double>(), object["guesses"]);
  }
  if (request_.json) fmt::print("{}\n", json_line(object));
}

// Prints the likely labels; as JSON all labels.
void PredictionPrinter::print_labels(const std::string& name,
                                     const at::Tensor& probabilities) const {
  nlohmann::ordered_json object{{"file", name}, {"labels", nlohmann::json::array()}};
  if (!request_.json) fmt::print("{}\n", printable(name));
  bool has_any = false;
  for (size_t i = 0; i < inputs_.classes.size(); ++i) {
    const double probability = probabilities[static_cast<int64_t>(i)].item<double>();
    if (!request_.json && probability <= 0.5) continue;
    has_any = true;
    print_fraction(inputs_.classes[i], "probability", probability, object["labels"]);
  }
  if (request_.json) {
    fmt::print("{}\n", json_line(object));
  } else if (!has_any) {
    fmt::print("  no label\n");
  }
}

void PredictionPrinter::print_fraction(const std::string& name, const char* key, double fraction,
                                       nlohmann::ordered_json& list) const {
  if (request_.json) {
    list.push_back({{"class", name}, {key, fraction}});
  } else {
    fmt::print("  {:<24} {}\n", printable(name), percent(fraction));
  }
}

void PredictionPrinter::print_numbers(const std::string& name, const at::Tensor& outputs) const {
  nlohmann::ordered_json object{{"file", name}};
  std::string line;
  const std::vector<double> values = numbers_of(inputs_, outputs);
  size_t next = 0;
  for (const std::string& target : inputs_.targets) {
    line += "  " + printable(target);
    if (inputs_.target_outputs.empty()) {
      const double value = values[next++];
      object[target] = value;
      line += " " + defined_text(value, "{:.6g}");
    }
    for (const std::string& output : inputs_.target_outputs) {
      const double value = values[next++];
      object[target][output] = value;
      line += fmt::format(" {} {}", output, defined_text(value, "{:.6g}"));
    }
  }
  if (request_.json) {
    fmt::print("{}\n", json_line(object));
  } else {
    fmt::print("{}{}\n", printable(name), line);
  }
}

// Prints the fraction of each class, and saves the mask if there is a folder for it.
void PredictionPrinter::print_mask(const std::string& name, const at::Tensor& classes) const {
  const at::Tensor counts = classes.reshape(-1).bincount({}, inputs_.outputs());
  nlohmann::ordered_json object{{"file", name}, {"classes", nlohmann::json::array()}};
  if (!request_.json) fmt::print("{}\n", printable(name));
  for (size_t i = 0; i < inputs_.classes.size(); ++i) {
    const auto count = counts[static_cast<int64_t>(i)].item<int64_t>();
    const double fraction = static_cast<double>(count) / static_cast<double>(classes.numel());
    if (request_.json || count > 0) {
      print_fraction(inputs_.classes[i], "fraction", fraction, object["classes"]);
    }
  }
  if (!request_.output.empty()) {
    const std::string file = write_mask(name, classes);
    object["mask"] = file;
    if (!request_.json) fmt::print("  mask {}\n", printable(file));
  }
  if (request_.json) fmt::print("{}\n", json_line(object));
}

std::string PredictionPrinter::write_mask(const std::string& name,
                                          const at::Tensor& classes) const {
  const at::Tensor bytes = classes.to(at::kByte).contiguous();
  data::Image image;
  image.height = static_cast<int>(bytes.size(0));
  image.width = static_cast<int>(bytes.size(1));
  image.channels = 1;
  const auto* const pixels = bytes.const_data_ptr<uint8_t>();
  image.pixels.assign(pixels, pixels + bytes.numel());
  const fs::path file = mask_file(request_.output, name);
  write_file_atomically(file, data::encode_png(image));
  return file.string();
}

}  // namespace gallop::app
