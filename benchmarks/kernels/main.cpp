// Compares kernels with LibTorch's operators for the same work, alternately in one process:
//   bench_kernels [--rounds N] [--json FILE] [NAME...]
// NAME selects the cases that begin with it, such as attention/bf16. Each case is forward and
// backward. Reports the median of each form, the median and quartiles of the ratio within a round,
// and for memory-bound kernels GB/s of the compulsory traffic, beside those of a copy.
#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cases.h"
#include "gallop/base/heap.h"
#include "measure.h"

namespace {

using namespace gallop::benchmark;

std::vector<MakeCase> all_cases() {
  std::vector<MakeCase> all;
  for (const auto family : {convolution_cases, gemm_cases, norm_cases, pointwise_cases, loss_cases,
                            update_cases, attention_cases}) {
    for (MakeCase& one : family()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

int main(int count, char** args) {
  gallop::retain_freed_memory();
  std::vector<std::string> names;
  std::string json;
  int rounds = 9;
  for (int i = 1; i < count; ++i) {
    const std::string word = args[i];
    if ((word == "--rounds" || word == "--json") && i + 1 < count) {
      (word == "--rounds" ? void(rounds = std::stoi(args[++i])) : void(json = args[++i]));
    } else {
      names.push_back(word);
    }
  }
  const double copy = copy_gb_per_second();
  print_head(copy);
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
  if (!json.empty()) {
    std::ofstream(json) << nlohmann::json{{"copy_gb_per_second", copy}, {"results", results}}.dump(
                               1)
                        << "\n";
  }
}
