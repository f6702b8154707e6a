#include "gallop/data/array_sequences.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/array_samples.h"
#include "gallop/data/samples.h"

namespace gallop::data {

namespace {

constexpr const char* kBlank = "blank";

}  // namespace

SequenceClasses classes_of_sequences(const std::string& file, const std::string& name,
                                     const NpyArray& sequences, const NpyArray* lengths) {
  const int64_t steps = sequences.sizes[1];
  std::vector<int64_t> row(static_cast<size_t>(steps));
  SequenceClasses classes;
  for (int64_t i = 0; i < sequences.sizes[0]; ++i) {
    read_row(sequences, i, row.data());
    auto end = std::find(row.begin(), row.end(), kIgnoredTarget);
    if (lengths != nullptr) {
      int64_t length = 0;
      read_row(*lengths, i, &length);
      end = row.begin() + length;
    } else if (std::any_of(end, row.end(), [](int64_t one) { return one != kIgnoredTarget; })) {
      throw DataError(fmt::format("{}: row {} of '{}' has classes after {}, which ends a sequence",
                                  printable(file), i, printable(name), kIgnoredTarget));
    }
    for (auto one = row.begin(); one != end; ++one) {
      if (*one < 0) {
        throw DataError(fmt::format(
            "{}: row {} of '{}' has the class {}, but classes are 0 or more; pad sequences with "
            "{}, or give their lengths in an array '{}'",
            printable(file), i, printable(name), *one, kIgnoredTarget, kTargetLengths));
      }
      classes.has_zero = classes.has_zero || *one == 0;
      classes.largest = std::max(classes.largest, *one);
    }
  }
  return classes;
}

void check_lengths(const std::string& file, const std::string& name, const NpyArray& lengths,
                   int64_t rows, int64_t least, int64_t most) {
  if (c10::isFloatingType(lengths.dtype) || lengths.sizes.size() != 1 || lengths.sizes[0] != rows) {
    throw DataError(fmt::format("{}: '{}' is not one whole number for each of {} samples",
                                printable(file), name, rows));
  }
  for (int64_t i = 0; i < rows; ++i) {
    int64_t length = 0;
    read_row(lengths, i, &length);
    if (length >= least && (most < 0 || length <= most)) continue;
    const std::string range =
        most < 0 ? fmt::format("{} or more", least) : fmt::format("from {} to {}", least, most);
    throw DataError(fmt::format("{}: row {} of '{}' is {}, but lengths are {}", printable(file), i,
                                name, length, range));
  }
}

ClassesWithBlank add_blank(const SequenceClasses& classes, const std::vector<std::string>& given) {
  ClassesWithBlank all{.names = given, .blank = 0};
  if (given.empty()) {
    for (int64_t i = 0; i <= classes.largest; ++i) all.names.push_back(std::to_string(i));
    if (!classes.has_zero && !all.names.empty()) all.names[0] = kBlank;
  }
  const auto count = static_cast<int64_t>(all.names.size());
  if (classes.largest >= count) {
    throw UsageError(fmt::format("data.classes has {} names, but there are classes up to {}", count,
                                 classes.largest));
  }
  if (!classes.has_zero) return all;
  if (count == classes.largest + 1) all.names.emplace_back(kBlank);
  all.blank = static_cast<int64_t>(all.names.size()) - 1;
  return all;
}

}  // namespace gallop::data
