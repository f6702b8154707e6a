#include "measure.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/base/clock.h"

namespace gallop::benchmark {

namespace {

double milliseconds(const Form& form, int64_t repeats) {
  const double begin = monotonic_seconds();
  for (int64_t i = 0; i < repeats; ++i) form.run();
  return 1000 * (monotonic_seconds() - begin) / static_cast<double>(repeats);
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}

}  // namespace

double copy_gb_per_second() {
  const at::Tensor from = at::ones({1 << 25}), to = at::zeros({1 << 25});
  std::vector<double> ms;
  const Form copy{"copy", [&] { to.copy_(from); }};
  for (int i = 0; i < 7; ++i) ms.push_back(milliseconds(copy, 1));
  std::sort(ms.begin(), ms.end());
  return 2 * bytes_of(from) / 1e6 / ms[3];
}

nlohmann::json measure(const Case& one, int rounds) {
  constexpr double kSeconds = 0.05;  // Duration of a form within a round.
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
  const double median = quantile(ms[0], 0.5);
  result["ms"] = median;
  result["gb_per_second"] = one.bytes / 1e6 / median;
  std::string line =
      fmt::format("{:38} {:8.3f} {:5}", one.name, median,
                  one.bytes > 0 ? fmt::format("{:.0f}", one.bytes / 1e6 / median) : "");
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

void print_head(double copy_gb_per_second) {
  fmt::print("copy: {:.0f} GB/s\n{:38} {:>8} {:>5}  others, ms, and ratio to gallop\n",
             copy_gb_per_second, "forward and backward", "gallop", "GB/s");
}

}  // namespace gallop::benchmark
