#include <algorithm>
#include <cstdio>
#include <map>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/json_line.h"
#include "gallop/app/predict.h"
#include "gallop/app/print.h"
#include "gallop/base/defined_text.h"
#include "gallop/base/file.h"
#include "gallop/base/philox.h"
#include "gallop/base/text.h"
#include "gallop/data/tokenizer.h"
#include "gallop/kernel/shared_cores.h"
#include "gallop/precision/precision.h"

namespace gallop::app {

namespace {

// The tokens of the beginning of a document, behind the end token of the one before.
std::vector<int64_t> begin_document(const std::string& text, const data::Signature& inputs,
                                    int64_t end_token) {
  const data::Tokenizer tokenizer(inputs);
  const std::vector<int32_t> units = tokenizer.tokens_of(text);
  std::vector<int64_t> tokens = {end_token};
  tokens.insert(tokens.end(), units.begin(), units.end());
  return tokens;
}

// Greedy tokenization: the longest matching token at each position; for characters and bytes, it is
// unique.
std::vector<int64_t> tokenize(const std::string& text, const std::vector<std::string>& vocabulary) {
  std::map<std::string, int64_t> numbers;
  size_t longest = 1;
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    numbers[vocabulary[i]] = static_cast<int64_t>(i);
    longest = std::max(longest, vocabulary[i].size());
  }
  std::vector<int64_t> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t length = std::min(longest, text.size() - at);
    while (length > 0 && !numbers.contains(text.substr(at, length))) --length;
    if (length == 0) {
      throw UsageError(fmt::format(
          "the character at byte {} of the text to continue does not occur in the text that "
          "this model was trained on",
          at));
    }
    tokens.push_back(numbers[text.substr(at, length)]);
    at += length;
  }
  return tokens;
}

int64_t draw(const at::Tensor& logits, double temperature, Philox& random) {
  if (temperature == 0) return logits.argmax().item<int64_t>();
  const at::Tensor probabilities =
      at::softmax(logits.to(at::kDouble).div(temperature), 0).contiguous();
  double left = random.uniform();
  const auto* values = probabilities.const_data_ptr<double>();
  for (int64_t i = 0; i < probabilities.numel(); ++i) {
    left -= values[i];
    if (left < 0) return i;
  }
  return probabilities.numel() - 1;
}

// Continues `prompt` by `length` tokens, or to the end of a document, printing them as they are
// generated.
void continue_text(TrainedModel& run, const std::string& prompt, const PredictRequest& request) {
  const std::vector<std::string> vocabulary = data::vocabulary_of(run.inputs);
  const std::string end = data::from_hex(run.inputs.end_token);
  const auto end_token = std::find(vocabulary.begin(), vocabulary.end(), end) - vocabulary.begin();
  const bool is_document = !end.empty(), has_words = is_document && run.inputs.unit == "words";
  std::vector<int64_t> tokens =
      is_document ? begin_document(prompt, run.inputs, end_token) : tokenize(prompt, vocabulary);
  if (tokens.empty()) tokens.push_back(0);
  Philox random(static_cast<uint64_t>(request.seed), Purpose::kSample, 0, 0);
  std::string written = prompt;
  if (!request.json) std::fputs(prompt.c_str(), stdout);
  for (int64_t i = 0; i < request.length; ++i) {
    kernel::share_cores_with_others();
    const auto seen = std::min<int64_t>(run.inputs.context, static_cast<int64_t>(tokens.size()));
    const at::Tensor input =
        at::from_blob(tokens.data() + tokens.size() - static_cast<size_t>(seen), {1, seen},
                      at::TensorOptions(at::kLong));
    const precision::AutocastGuard autocast(run.precision(), c10::kCPU);
    const at::Tensor logits = run.task().prediction.shown(run.model->forward(input)[0])[seen - 1];
    tokens.push_back(draw(logits, request.temperature, random));
    if (is_document && tokens.back() == end_token) break;
    const std::string separator = has_words && !written.empty() ? " " : "";
    const std::string text = separator + vocabulary[static_cast<size_t>(tokens.back())];
    written += text;
    if (request.json) continue;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
  if (request.json) {
    fmt::print("{}\n", json_line(nlohmann::json{{"text", written}}));
  } else {
    std::fputs("\n", stdout);
  }
}

struct Candidate {
  std::string token;
  double probability;
};

// The most likely tokens at a position.
std::vector<Candidate> candidates_of(const at::Tensor& logits,
                                     const std::vector<std::string>& vocabulary, int64_t count) {
  const at::Tensor probabilities = at::softmax(logits.to(at::kFloat), 0);
  const auto [values, tokens] = probabilities.topk(std::min<int64_t>(count, probabilities.size(0)));
  std::vector<Candidate> candidates;
  for (int64_t i = 0; i < values.size(0); ++i) {
    candidates.push_back(
        {vocabulary[static_cast<size_t>(tokens[i].item<int64_t>())], values[i].item<double>()});
  }
  return candidates;
}

// Prints the text with the most likely token in place of each mask, and the candidates.
void fill_masks(TrainedModel& run, const std::string& text, const PredictRequest& request) {
  const std::vector<std::string> vocabulary = data::vocabulary_of(run.inputs);
  const std::string mask = data::from_hex(run.inputs.mask_token);
  const std::vector<int64_t> tokens = tokenize(text, vocabulary);
  const auto count = static_cast<int64_t>(tokens.size());
  if (count > run.inputs.context) {
    throw UsageError(fmt::format("the text has {} tokens, but the model's context is {}", count,
                                 run.inputs.context));
  }
  const auto is_mask = [&](size_t i) { return vocabulary[static_cast<size_t>(tokens[i])] == mask; };
  size_t masks = 0;
  for (size_t i = 0; i < tokens.size(); ++i) masks += is_mask(i) ? 1 : 0;
  if (masks == 0) {
    throw UsageError(fmt::format(
        "the text contains no {0}; for example: gallop predict RUN --prompt 'to {0}e'", mask));
  }
  const at::Tensor input = at::full({1, count}, 0, at::kLong);
  std::copy(tokens.begin(), tokens.end(), input.mutable_data_ptr<int64_t>());
  const precision::AutocastGuard autocast(run.precision(), c10::kCPU);
  const at::Tensor logits = run.task().prediction.shown(run.model->forward(input)[0]);
  std::string filled;
  nlohmann::ordered_json found = nlohmann::json::array();
  std::string lines;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!is_mask(i)) {
      filled += vocabulary[static_cast<size_t>(tokens[i])];
      continue;
    }
    const auto candidates = candidates_of(logits[static_cast<int64_t>(i)], vocabulary, request.top);
    filled += candidates.front().token;
    nlohmann::ordered_json one{{"position", i}, {"candidates", nlohmann::json::array()}};
    lines += fmt::format("  position {}\n", i);
    for (const auto& [token, probability] : candidates) {
      one["candidates"].push_back({{"token", token}, {"probability", probability}});
      lines += fmt::format("    {:<22} {}\n", printable(token),
                           defined_text(100 * probability, "{:5.1f} %"));
    }
    found.push_back(std::move(one));
  }
  if (request.json) {
    fmt::print("{}\n", json_line(nlohmann::ordered_json{{"text", filled}, {"masks", found}}));
  } else {
    fmt::print("{}\n{}", filled, lines);
  }
}

}  // namespace

void predict_text(TrainedModel& run, const PredictRequest& request) {
  const bool continues = run.task().prediction.form == train::Prediction::Form::kNextToken;
  const auto predict = [&](const std::string& text) {
    if (continues) {
      continue_text(run, text, request);
    } else {
      fill_masks(run, text, request);
    }
  };
  if (!request.files.empty() && !request.prompt.empty()) {
    throw UsageError("give either text files or --prompt, not both");
  }
  if (request.files.empty()) predict(request.prompt);
  for (const auto& file : request.files) predict(read_file(file, 1 << 24));
}

}  // namespace gallop::app
