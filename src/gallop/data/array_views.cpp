#include "gallop/data/array_views.h"

#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/array_samples.h"

namespace gallop::data {

namespace {

std::string text_of(const std::vector<int64_t>& sizes) {
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

}  // namespace

ArrayViews views_of(const std::string& file, const NamedArrays& inputs) {
  const auto& [name, array] = inputs.front();
  std::vector<int64_t> sizes = array->row_sizes();
  if (inputs.size() > 1) {
    for (const auto& [other, more] : inputs) {
      if (more->row_sizes() == sizes) continue;
      throw DataError(fmt::format(
          "{}: rows of '{}' have sizes {}, and those of '{}' {}; with data.task=pair-embedding, "
          "the arrays of data.inputs are the views of a sample, which need the same sizes",
          printable(file), printable(other), text_of(more->row_sizes()), printable(name),
          text_of(sizes)));
    }
    return {.count = static_cast<int64_t>(inputs.size()), .sizes = std::move(sizes)};
  }
  if (sizes.size() < 2 || sizes.front() < 2) {
    throw DataError(fmt::format(
        "{}: rows of '{}' have sizes {}, but data.task=pair-embedding needs the views of a sample "
        "in the first dimension of a row: [2, ...] for pairs, [3, ...] for triplets; or an array "
        "for each view, named in data.inputs",
        printable(file), printable(name), text_of(sizes)));
  }
  const int64_t count = sizes.front();
  sizes.erase(sizes.begin());
  return {.count = count, .sizes = std::move(sizes)};
}

void check_pair_targets(const std::string& file, const std::string& name, const NpyArray& target) {
  if (c10::multiply_integers(target.row_sizes()) != 1) {
    throw DataError(
        fmt::format("{}: rows of '{}' have sizes {}, but a pair has one target, 1 or -1",
                    printable(file), printable(name), text_of(target.row_sizes())));
  }
  for (int64_t row = 0; row < target.sizes.front(); ++row) {
    float value = 0;
    read_row(target, row, &value);
    if (value == 1 || value == -1) continue;
    throw DataError(fmt::format(
        "{}: row {} of '{}' is {:g}, but with data.task=pair-embedding targets are 1 for pairs "
        "that match and -1 for others: save 2 * y - 1 in place of 1 and 0, or leave the array out",
        printable(file), row, printable(name), value));
  }
}

}  // namespace gallop::data
