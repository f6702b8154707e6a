#include "gallop/tensor/page_tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include <gtest/gtest.h>

#include "unit/tensor/resident.h"

namespace gallop {
namespace {

const int64_t kPage = sysconf(_SC_PAGESIZE) / static_cast<int64_t>(sizeof(float));

TEST(PageTensor, ReleasesWholePagesOnly) {
  const at::Tensor tensor = zeros_in_pages(8 * kPage + 5, at::kFloat);
  tensor.fill_(1);
  EXPECT_EQ(resident_pages(tensor), 9);
  const void* const before = tensor.const_data_ptr();
  release_pages_of(tensor, kPage - 1, 4 * kPage + 7);
  EXPECT_EQ(resident_pages(tensor), 6);
  EXPECT_EQ(tensor.const_data_ptr(), before);
  EXPECT_EQ(tensor.narrow(0, 0, kPage).min().item<float>(), 1);
  EXPECT_EQ(tensor.narrow(0, kPage, 3 * kPage).abs().max().item<float>(), 0);
  EXPECT_EQ(tensor.narrow(0, 4 * kPage, 4 * kPage + 5).min().item<float>(), 1);
  tensor.fill_(2);
  EXPECT_EQ(resident_pages(tensor), 9);
}

TEST(PageTensor, ReleasesNothingWithinAPage) {
  const at::Tensor tensor = zeros_in_pages(2 * kPage, at::kFloat);
  tensor.fill_(1);
  release_pages_of(tensor, 1, kPage);
  release_pages_of(tensor, kPage, kPage);
  EXPECT_EQ(tensor.min().item<float>(), 1);
}

TEST(PageTensor, MayBeEmpty) { EXPECT_EQ(zeros_in_pages(0, at::kFloat).numel(), 0); }

}  // namespace
}  // namespace gallop
