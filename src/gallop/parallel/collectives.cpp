#include "gallop/parallel/collectives.h"

#include <cstring>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"

namespace gallop::parallel {

std::vector<double> sum_over_all(Collectives& collectives, const std::vector<double>& numbers) {
  if (numbers.empty()) return {};
  const at::Tensor sums = at::empty({static_cast<int64_t>(numbers.size())}, at::kDouble);
  auto* const data = sums.mutable_data_ptr<double>();
  std::copy(numbers.begin(), numbers.end(), data);
  collectives.start_sum(sums);
  collectives.wait(sums);
  return {data, data + numbers.size()};
}

std::string text_of_first(Collectives& collectives, const std::string& text) {
  const at::Tensor size = at::zeros({1}, at::kLong);
  *size.mutable_data_ptr<int64_t>() = static_cast<int64_t>(text.size());
  collectives.broadcast(size);
  const int64_t bytes = *size.const_data_ptr<int64_t>();
  if (bytes == 0) return {};
  const at::Tensor buffer = at::zeros({bytes}, at::kByte);
  auto* const data = buffer.mutable_data_ptr<uint8_t>();
  if (collectives.rank() == 0) std::memcpy(data, text.data(), text.size());
  collectives.broadcast(buffer);
  return {data, data + bytes};
}

void require_same(Collectives& collectives, const std::string& what, const std::string& text) {
  const bool differs = text_of_first(collectives, xxh3_128(text)) != xxh3_128(text);
  std::vector<double> who(static_cast<size_t>(collectives.size()));
  who[static_cast<size_t>(collectives.rank())] = differs ? 1 : 0;
  who = sum_over_all(collectives, who);
  for (size_t rank = 0; rank < who.size(); ++rank) {
    if (who[rank] == 0) continue;
    throw UsageError(fmt::format("{} of rank {} is another one than that of rank 0: start all "
                                 "processes with the same program, recipe, options and data",
                                 what, rank));
  }
}

}  // namespace gallop::parallel
