// Kernels beside what LibTorch has for the same work, in turn, in one process:
//   bench_kernels [--rounds N] [--json FILE] [NAME...]
// A NAME chooses the cases that begin with it, such as attention/bf16. Each case is forward and
// backward; told are the median of each form and the median of the ratio within a round with its
// quartiles.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/clock.h"
#include "gallop/base/heap.h"
#include "gallop/kernel/attention.h"
#include "gallop/model/functional/attention.h"

namespace {

using namespace gallop;

/// One way to do the work, called often.
struct Form {
  std::string name;
  std::function<void()> run;
};

/// The first form is ours.
struct Case {
  std::string name;
  std::vector<Form> forms;
};

using MakeCase = std::function<Case()>;

void forward_backward(const at::Tensor& y, const at::Tensor& dy, const at::Tensor& input) {
  y.backward(dy);
  input.mutable_grad().reset();
}

at::Tensor by_products(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                       const at::Tensor& mask) {
  const auto flat = [](const at::Tensor& x_BHTD) { return x_BHTD.flatten(0, 1); };
  auto weights = at::bmm(flat(q) * scale, flat(k).transpose(1, 2));
  if (mask.defined()) weights = weights.add_(mask);
  return at::bmm(at::softmax(weights, -1), flat(v)).view(q.sizes());
}

Case attention_case(int64_t batch, int64_t tokens, int64_t heads, int64_t width, bool causal,
                    at::ScalarType type) {
  const at::Tensor qkv = at::randn({batch, tokens, 3, heads, width}).to(type).requires_grad_(true);
  const at::Tensor dy = at::randn({batch, tokens, heads, width}).to(type);
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  at::Tensor mask;
  if (causal) {
    mask =
        at::full({tokens, tokens}, -std::numeric_limits<double>::infinity(), dy.options()).triu_(1);
  }
  Case result{fmt::format("attention/{}/{}x{}x{}x{}{}", type == at::kFloat ? "fp32" : "bf16", batch,
                          tokens, heads, width, causal ? "/causal" : ""),
              {}};
  result.forms.push_back(
      {"gallop", [=] {
         forward_backward(model::fused_attention(qkv, {.causal = causal, .scale = scale}), dy, qkv);
       }});
  const auto parts = [=] { return qkv.permute({2, 0, 3, 1, 4}).unbind(0); };
  result.forms.push_back({"sdpa", [=] {
                            const auto p = parts();
                            const auto y =
                                at::scaled_dot_product_attention(p[0], p[1], p[2], {}, 0, causal);
                            forward_backward(y.transpose(1, 2).contiguous(), dy, qkv);
                          }});
  result.forms.push_back({"bmm", [=] {
                            const auto p = parts();
                            const auto y = by_products(p[0], p[1], p[2], scale, mask);
                            forward_backward(y.transpose(1, 2).contiguous(), dy, qkv);
                          }});
  return result;
}

std::vector<MakeCase> all_cases() {
  std::vector<MakeCase> cases;
  for (const auto type : {at::kBFloat16, at::kFloat}) {
    for (const bool causal : {true, false}) {
      for (const auto& [batch, tokens, heads, width] :
           std::vector<std::array<int64_t, 4>>{{16, 128, 8, 32},
                                               {128, 65, 3, 64},
                                               {16, 197, 3, 64},
                                               {8, 256, 12, 64},
                                               {4, 512, 12, 64},
                                               {4, 1024, 12, 64},
                                               {2, 2048, 4, 128},
                                               {64, 16, 4, 16}}) {
        cases.push_back([=] { return attention_case(batch, tokens, heads, width, causal, type); });
      }
    }
  }
  return cases;
}

double milliseconds(const Form& form, int64_t repeats) {
  const double begin = monotonic_seconds();
  for (int64_t i = 0; i < repeats; ++i) form.run();
  return 1000 * (monotonic_seconds() - begin) / static_cast<double>(repeats);
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}

nlohmann::json measure(const Case& one, int rounds) {
  constexpr double kSeconds = 0.05;  // Of a form within a round.
  std::vector<std::vector<double>> ms(one.forms.size());
  std::vector<int64_t> repeats;
  for (const Form& form : one.forms) {
    milliseconds(form, 2);
    repeats.push_back(
        std::clamp<int64_t>(std::llround(1000 * kSeconds / milliseconds(form, 1)), 1, 1000));
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < ms.size(); ++i) ms[i].push_back(milliseconds(one.forms[i], repeats[i]));
  }
  nlohmann::json result{{"name", one.name}, {"others", nlohmann::json::array()}};
  result["ms"] = quantile(ms[0], 0.5);
  std::string line = fmt::format("{:36} {:9.3f}", one.name, quantile(ms[0], 0.5));
  for (size_t i = 1; i < ms.size(); ++i) {
    std::vector<double> ratios;
    for (size_t round = 0; round < ms[i].size(); ++round)
      ratios.push_back(ms[i][round] / ms[0][round]);
    result["others"].push_back({{"name", one.forms[i].name},
                                {"ms", quantile(ms[i], 0.5)},
                                {"ratio", quantile(ratios, 0.5)},
                                {"quartiles", {quantile(ratios, 0.25), quantile(ratios, 0.75)}}});
    line += fmt::format("  {:>5} {:9.3f} {:5.2f} ({:.2f} to {:.2f})", one.forms[i].name,
                        quantile(ms[i], 0.5), quantile(ratios, 0.5), quantile(ratios, 0.25),
                        quantile(ratios, 0.75));
  }
  fmt::print("{}\n", line);
  std::fflush(stdout);
  return result;
}

}  // namespace

int main(int count, char** words) {
  keep_freed_memory();
  std::vector<std::string> names;
  std::string json;
  int rounds = 9;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if ((word == "--rounds" || word == "--json") && i + 1 < count) {
      (word == "--rounds" ? void(rounds = std::stoi(words[++i])) : void(json = words[++i]));
    } else {
      names.push_back(word);
    }
  }
  fmt::print("forward and backward, ms: gallop, then each other with its time in Gallop's\n");
  nlohmann::json results = nlohmann::json::array();
  for (const MakeCase& make : all_cases()) {
    const Case one = make();
    if (!names.empty() && std::none_of(names.begin(), names.end(), [&](const std::string& name) {
          return one.name.starts_with(name);
        })) {
      continue;
    }
    results.push_back(measure(one, rounds));
  }
  if (!json.empty()) std::ofstream(json) << results.dump(1) << "\n";
}
