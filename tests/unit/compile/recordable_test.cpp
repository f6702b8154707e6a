#include "gallop/compile/recordable.h"

#include <gtest/gtest.h>

namespace gallop::compile {
namespace {

c10::OperatorHandle operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

// Forms of attention for GPUs also give the longest sequences, which are no secret of the data.
TEST(Recordable, ScalarsMayDependOnSizes) {
  for (const char* name :
       {"aten::_scaled_dot_product_cudnn_attention", "aten::_scaled_dot_product_flash_attention",
        "aten::_fused_sdp_choice", "aten::_scaled_dot_product_efficient_attention"}) {
    EXPECT_EQ(why_not_recorded(operator_named(name), {}), "") << name;
  }
  for (const char* name : {"aten::item", "aten::equal", "aten::is_nonzero"}) {
    EXPECT_EQ(why_not_recorded(operator_named(name), {}), "reads a value on the host") << name;
  }
}

}  // namespace
}  // namespace gallop::compile
