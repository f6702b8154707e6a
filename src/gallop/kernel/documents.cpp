#include "gallop/kernel/documents.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::kernel {

Documents::Documents(const at::Tensor& position_ids_BT, int64_t rows, int64_t tokens) {
  const at::Tensor positions =
      position_ids_BT.defined() ? position_ids_BT.contiguous() : at::Tensor();
  for (int64_t row = 0; row < rows; ++row) {
    first_.push_back(documents_.size());
    if (!positions.defined()) {
      documents_.push_back({0, tokens});
      continue;
    }
    const int64_t* const ids = positions.const_data_ptr<int64_t>() + row * tokens;
    for (int64_t t = 0; t < tokens; ++t) {
      if (ids[t] == 0) {
        documents_.push_back({t, 1});
      } else if (t > 0 && ids[t] == ids[t - 1] + 1) {
        ++documents_.back().tokens;
      } else {
        throw DataError(
            fmt::format("position_ids: token {} of row {} is at position {}, but positions begin "
                        "at 0 and count up to the end of a document",
                        t, row, ids[t]));
      }
    }
  }
  first_.push_back(documents_.size());
  for (const Document& one : documents_) longest_ = std::max(longest_, one.tokens);
}

}  // namespace gallop::kernel
