#include "gallop/tensor/named_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop {
namespace {

TEST(CopyByName, CopiesInAnyOrder) {
  const NamedTensors source = {{"a", at::ones({2})}, {"b", at::ones({3, 2}) * 2}};
  const NamedTensors target = {{"b", at::zeros({3, 2})}, {"a", at::zeros({2})}};
  target[0].tensor.requires_grad_(true);
  copy_by_name(source, "file", target);
  EXPECT_TRUE(at::equal(target[0].tensor, source[1].tensor));
  EXPECT_TRUE(at::equal(target[1].tensor, source[0].tensor));
}

TEST(CopyByName, ReportsAllDifferencesWithoutCopying) {
  const NamedTensors source = {{"same", at::ones({2})},
                               {"shape", at::ones({2, 3})},
                               {"type", at::ones({2}, at::TensorOptions(c10::kHalf))},
                               {"extra\n", at::ones({1})}};
  const NamedTensors target = {{"same", at::zeros({2})},
                               {"shape", at::zeros({3, 2})},
                               {"type", at::zeros({2})},
                               {"gone", at::zeros({1})}};
  try {
    copy_by_name(source, "model.safetensors", target);
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "model.safetensors does not fit the recipe that it is loaded into:\n"
                 "  shape: is Float [2, 3], expected Float [3, 2]\n"
                 "  type: is Half [2], expected Float [2]\n"
                 "  gone: missing\n"
                 "  extra?: not expected");
  }
  EXPECT_TRUE(at::equal(target[0].tensor, at::zeros({2})));
}

TEST(CopyByName, RejectsDuplicateNames) {
  const NamedTensors twice = {{"a", at::ones({2})}, {"a", at::ones({2})}};
  EXPECT_THROW(copy_by_name(twice, "file", twice), InternalError);
}

}  // namespace
}  // namespace gallop
