#include "gallop/kernel/attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <ATen/ops/empty.h>

#include "gallop/kernel/cpu/attention.h"
#include "gallop/kernel/operator.h"

namespace gallop::kernel {

namespace {

constexpr int64_t kMaxTokens = 2048;
constexpr int64_t kMaxWidth = 256;

struct Shape {
  int64_t batch, tokens, heads, width;

  explicit Shape(const at::Tensor& qkv_BT3HD)
      : batch(qkv_BT3HD.size(0)),
        tokens(qkv_BT3HD.size(1)),
        heads(qkv_BT3HD.size(3)),
        width(qkv_BT3HD.size(4)) {}

  // Queries that are worked on at once. Smaller blocks compute less behind the diagonal.
  int64_t block() const { return tokens <= 256 ? 32 : 64; }
};

// Products in bf16 take pairs of rows, so inner sizes must be even.
template <typename Number>
int64_t padded(int64_t size) {
  return std::is_same_v<Number, Bf16> ? size + size % 2 : size;
}

// c[m, n] (+)= a[m, k] b[k, n], b paired.
void multiply(int64_t m, int64_t n, int64_t k, const Bf16* a, int64_t a_stride, const Bf16* b,
              int64_t b_stride, float* c, int64_t c_stride, bool add) {
  at::native::cpublas::brgemm(m, n, k, a_stride, b_stride, c_stride, add,
                              reinterpret_cast<const at::BFloat16*>(a),
                              reinterpret_cast<const at::BFloat16*>(b), c, /*is_vnni=*/true);
}

void multiply(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_stride, const float* b,
              int64_t b_stride, float* c, int64_t c_stride, bool add) {
  at::native::cpublas::brgemm(m, n, k, a_stride, b_stride, c_stride, add, a, b, c,
                              /*is_vnni=*/false);
}

// Memory of one thread, handed out in parts that begin at cache lines.
class Workspace {
 public:
  template <typename Number>
  Number* take(int64_t count) {
    parts_.emplace_back(static_cast<size_t>(count) * sizeof(Number) + kLine);
    void* data = parts_.back().data();
    size_t space = parts_.back().size();
    return static_cast<Number*>(std::align(kLine, space - kLine, data, space));
  }

 private:
  static constexpr size_t kLine = 64;
  std::vector<std::vector<char>> parts_;
};

// Queries, keys and values of one head, in place or turned.
template <typename Number>
struct Head {
  Matrix<const Number> query, key, value;
};

template <typename Number>
class Attention {
 public:
  Attention(const Shape& shape, const AttentionOptions& options)
      : shape_(shape),
        causal_(options.causal),
        scale_(static_cast<float>(options.scale)),
        cosines_(options.rotation_TD.defined() ? options.rotation_TD.const_data_ptr<float>()
                                               : nullptr) {}

  void forward(const Number* qkv, Number* y, float* log_sums) const {
    at::parallel_for(0, shape_.batch * shape_.heads, 1, [&](int64_t begin, int64_t end) {
      Forward work(shape_);
      for (int64_t i = begin; i < end; ++i) {
        forward_head(head(qkv, i, work.turned), output(y, i), log_sums + i * shape_.tokens, work);
      }
      at::native::cpublas::brgemm_release(std::is_same_v<Number, Bf16>);
    });
  }

  void backward(const Number* dy, const Number* qkv, const Number* y, const float* log_sums,
                Number* dqkv) const {
    at::parallel_for(0, shape_.batch * shape_.heads, 1, [&](int64_t begin, int64_t end) {
      Backward work(shape_);
      for (int64_t i = begin; i < end; ++i) {
        bodies_.dot(constant(output(dy, i)), constant(output(y, i)), work.dots);
        backward_head(head(qkv, i, work.turned), constant(output(dy, i)),
                      log_sums + i * shape_.tokens, Gradient(*this, dqkv, i), work);
      }
      at::native::cpublas::brgemm_release(std::is_same_v<Number, Bf16>);
    });
  }

 private:
  struct Turned {
    Turned(const Shape& shape, Workspace& space)
        : query(space.take<Number>(shape.tokens * shape.width)),
          key(space.take<Number>(shape.tokens * shape.width)) {}
    Number *query, *key;
  };

  struct Forward {
    explicit Forward(const Shape& s)
        : turned(s, space),
          key_transposed(space.take<Number>(s.tokens * s.width)),
          value_paired(space.take<Number>(padded<Number>(s.tokens) * s.width)),
          scores(space.take<float>(s.block() * s.tokens)),
          weights(space.take<Number>(s.block() * padded<Number>(s.tokens))),
          y(space.take<float>(s.block() * s.width)),
          sums(space.take<float>(s.block())) {}
    Workspace space;
    Turned turned;
    Number *key_transposed, *value_paired;
    float* scores;
    Number* weights;
    float *y, *sums;
  };

  struct Backward {
    explicit Backward(const Shape& s)
        : turned(s, space),
          query_transposed(space.take<Number>(s.tokens * s.width)),
          query_paired(space.take<Number>(padded<Number>(s.tokens) * s.width)),
          dy_transposed(space.take<Number>(s.tokens * s.width)),
          dy_paired(space.take<Number>(padded<Number>(s.tokens) * s.width)),
          key_transposed(space.take<Number>(padded<Number>(s.tokens) * s.width)),
          weights(space.take<Number>(padded<Number>(s.tokens) * padded<Number>(s.block()))),
          dscores(space.take<Number>(padded<Number>(s.tokens) * padded<Number>(s.block()))),
          dscores_paired(space.take<Number>(padded<Number>(s.tokens) * s.block())),
          scores(space.take<float>(s.tokens * s.block())),
          dweights(space.take<float>(s.tokens * s.block())),
          dquery(space.take<float>(s.block() * s.width)),
          dkey(space.take<float>(s.tokens * s.width)),
          dvalue(space.take<float>(s.tokens * s.width)),
          dots(space.take<float>(s.tokens)) {}
    Workspace space;
    Turned turned;
    Number *query_transposed, *query_paired, *dy_transposed, *dy_paired, *key_transposed;
    Number *weights, *dscores, *dscores_paired;
    float *scores, *dweights, *dquery, *dkey, *dvalue, *dots;
  };

  struct Gradient {
    Gradient(const Attention& attention, Number* dqkv, int64_t i)
        : query(attention.part(dqkv, i, 0)),
          key(attention.part(dqkv, i, 1)),
          value(attention.part(dqkv, i, 2)) {}
    Matrix<Number> query, key, value;
  };

  // Queries (0), keys (1) or values (2) of head i, counted over the batch.
  template <typename Any>
  Matrix<Any> part(Any* qkv, int64_t i, int64_t which) const {
    const int64_t row = 3 * shape_.heads * shape_.width;
    const int64_t sample = i / shape_.heads, h = i % shape_.heads;
    return {qkv + sample * shape_.tokens * row + (which * shape_.heads + h) * shape_.width,
            shape_.tokens, shape_.width, row};
  }

  template <typename Any>
  Matrix<Any> output(Any* y, int64_t i) const {
    const int64_t row = shape_.heads * shape_.width;
    const int64_t sample = i / shape_.heads, h = i % shape_.heads;
    return {y + sample * shape_.tokens * row + h * shape_.width, shape_.tokens, shape_.width, row};
  }

  template <typename Any>
  static Matrix<const Any> constant(const Matrix<Any>& m) {
    return {m.data, m.rows, m.columns, m.stride};
  }

  Head<Number> head(const Number* qkv, int64_t i, const Turned& turned) const {
    Head<Number> head{part(qkv, i, 0), part(qkv, i, 1), part(qkv, i, 2)};
    if (cosines_ != nullptr) {
      bodies_.rotate(head.query, cosines_, turned.query);
      bodies_.rotate(head.key, cosines_, turned.key);
      head.query = {turned.query, shape_.tokens, shape_.width, shape_.width};
      head.key = {turned.key, shape_.tokens, shape_.width, shape_.width};
    }
    return head;
  }

  // Keys that queries [first, first + count) see, and how many of them the first one does.
  int64_t keys_of(int64_t first, int64_t count) const {
    return causal_ ? first + count : shape_.tokens;
  }
  int64_t visible_to(int64_t query) const { return causal_ ? query + 1 : shape_.tokens; }

  void forward_head(const Head<Number>& head, const Matrix<Number>& y, float* log_sums,
                    const Forward& work) const {
    const int64_t tokens = shape_.tokens, width = shape_.width;
    bodies_.transpose_and_pair(head.key, work.key_transposed);
    bodies_.pair(head.value, work.value_paired);
    for (int64_t first = 0; first < tokens; first += shape_.block()) {
      const int64_t count = std::min(shape_.block(), tokens - first);
      const int64_t keys = keys_of(first, count), inner = padded<Number>(keys);
      multiply(count, keys, width, head.query.row(first), head.query.stride, work.key_transposed,
               tokens, work.scores, keys, false);
      bodies_.softmax({work.scores, count, keys, keys}, scale_, visible_to(first),
                      {work.weights, count, inner, inner}, work.sums, log_sums + first);
      multiply(count, width, inner, work.weights, inner, work.value_paired, width, work.y, width,
               false);
      bodies_.divide({work.y, count, width, width}, work.sums,
                     {y.row(first), count, width, y.stride});
    }
  }

  // Scores and their gradients are made transposed, [keys, queries]: so they are the left side of
  // the products that give the gradients of keys and values.
  void backward_head(const Head<Number>& head, const Matrix<const Number>& dy,
                     const float* log_sums, const Gradient& to, const Backward& work) const {
    const int64_t tokens = shape_.tokens, width = shape_.width;
    const int64_t key_stride = padded<Number>(tokens);
    bodies_.transpose_and_pair(head.query, work.query_transposed);
    bodies_.pair(head.query, work.query_paired);
    bodies_.transpose_and_pair(dy, work.dy_transposed);
    bodies_.pair(dy, work.dy_paired);
    if (key_stride > tokens) std::fill_n(work.key_transposed, key_stride * width, Number{});
    bodies_.transpose(head.key, work.key_transposed, key_stride);
    std::fill_n(work.dkey, tokens * width, 0.0F);
    std::fill_n(work.dvalue, tokens * width, 0.0F);

    for (int64_t first = 0; first < tokens; first += shape_.block()) {
      const int64_t count = std::min(shape_.block(), tokens - first);
      const int64_t keys = keys_of(first, count), inner = padded<Number>(count);
      if (inner > count) {
        std::fill_n(work.weights, keys * inner, Number{});
        std::fill_n(work.dscores, keys * inner, Number{});
      }
      multiply(keys, count, width, head.key.data, head.key.stride,
               columns_from(work.query_transposed, first), tokens, work.scores, count, false);
      multiply(keys, count, width, head.value.data, head.value.stride,
               columns_from(work.dy_transposed, first), tokens, work.dweights, count, false);
      bodies_.backward({work.scores, keys, count, count}, work.dweights, scale_, visible_to(first),
                       log_sums + first, work.dots + first, {work.weights, keys, count, inner},
                       work.dscores, work.dscores_paired);
      multiply(keys, width, inner, work.weights, inner, work.dy_paired + first * width, width,
               work.dvalue, width, true);
      multiply(keys, width, inner, work.dscores, inner, work.query_paired + first * width, width,
               work.dkey, width, true);
      multiply(width, count, padded<Number>(keys), work.key_transposed, key_stride,
               paired_dscores(work), std::is_same_v<Number, Bf16> ? count : inner, work.dquery,
               count, false);
      bodies_.write_transposed({work.dquery, width, count, count}, cosines_of(first),
                               {to.query.row(first), count, width, to.query.stride});
    }
    bodies_.write({work.dkey, tokens, width, width}, cosines_of(0), to.key);
    bodies_.write({work.dvalue, tokens, width, width}, nullptr, to.value);
  }

  // Where column `first` of a paired matrix begins.
  static const Number* columns_from(const Number* paired, int64_t first) {
    return paired + (std::is_same_v<Number, Bf16> ? 2 : 1) * first;
  }
  static const Number* paired_dscores(const Backward& work) {
    return std::is_same_v<Number, Bf16> ? work.dscores_paired : work.dscores;
  }
  const float* cosines_of(int64_t token) const {
    return cosines_ == nullptr ? nullptr : cosines_ + token * shape_.width;
  }

  Shape shape_;
  bool causal_;
  float scale_;
  const float* cosines_;
  const AttentionBodies<Number>& bodies_ = best_bodies<AttentionBodies<Number>>();
};

const Bf16* data_bf16(const at::Tensor& tensor) {
  return static_cast<const Bf16*>(tensor.const_data_ptr());
}

AttentionOptions options_of(bool causal, double scale, const std::optional<at::Tensor>& rotation) {
  return {.causal = causal, .scale = scale, .rotation_TD = rotation.value_or(at::Tensor())};
}

std::tuple<at::Tensor, at::Tensor> forward_on_cpu(const at::Tensor& qkv_BT3HD, bool causal,
                                                  double scale,
                                                  const std::optional<at::Tensor>& rotation) {
  const Shape shape(qkv_BT3HD);
  const AttentionOptions options = options_of(causal, scale, rotation);
  at::Tensor y_BTHD =
      at::empty({shape.batch, shape.tokens, shape.heads, shape.width}, qkv_BT3HD.options());
  at::Tensor log_sums_BHT = at::empty({shape.batch, shape.heads, shape.tokens}, at::kFloat);
  auto* log_sums = log_sums_BHT.mutable_data_ptr<float>();
  if (qkv_BT3HD.scalar_type() == at::kBFloat16) {
    Attention<Bf16>(shape, options)
        .forward(data_bf16(qkv_BT3HD), static_cast<Bf16*>(y_BTHD.mutable_data_ptr()), log_sums);
  } else {
    Attention<float>(shape, options)
        .forward(qkv_BT3HD.const_data_ptr<float>(), y_BTHD.mutable_data_ptr<float>(), log_sums);
  }
  return {y_BTHD, log_sums_BHT};
}

at::Tensor backward_on_cpu(const at::Tensor& dy_BTHD, const at::Tensor& qkv_BT3HD,
                           const at::Tensor& y_BTHD, const at::Tensor& log_sums_BHT, bool causal,
                           double scale, const std::optional<at::Tensor>& rotation) {
  const Shape shape(qkv_BT3HD);
  const AttentionOptions options = options_of(causal, scale, rotation);
  const at::Tensor dy = dy_BTHD.contiguous();
  at::Tensor dqkv = at::empty(qkv_BT3HD.sizes(), qkv_BT3HD.options());
  const auto* log_sums = log_sums_BHT.const_data_ptr<float>();
  if (qkv_BT3HD.scalar_type() == at::kBFloat16) {
    Attention<Bf16>(shape, options)
        .backward(data_bf16(dy), data_bf16(qkv_BT3HD), data_bf16(y_BTHD), log_sums,
                  static_cast<Bf16*>(dqkv.mutable_data_ptr()));
  } else {
    Attention<float>(shape, options)
        .backward(dy.const_data_ptr<float>(), qkv_BT3HD.const_data_ptr<float>(),
                  y_BTHD.const_data_ptr<float>(), log_sums, dqkv.mutable_data_ptr<float>());
  }
  return dqkv;
}

}  // namespace

bool has_attention(const at::Tensor& qkv_BT3HD) {
  const bool bf16 = qkv_BT3HD.scalar_type() == at::kBFloat16;
  if (!qkv_BT3HD.is_cpu() || !qkv_BT3HD.is_contiguous() || qkv_BT3HD.dim() != 5) return false;
  if (!bf16 && qkv_BT3HD.scalar_type() != at::kFloat) return false;
  const Shape shape(qkv_BT3HD);
  return has(Isa::kAvx512) && (!bf16 || at::native::cpublas::could_pack(at::kBFloat16)) &&
         shape.tokens <= kMaxTokens && shape.width <= kMaxWidth && shape.width % 2 == 0;
}

AttentionOutput attention(const at::Tensor& qkv_BT3HD, const AttentionOptions& options) {
  static const Operator kForward(
      "attention(Tensor qkv, bool causal, float scale, Tensor? rotation) -> (Tensor y, Tensor "
      "log_sums)",
      forward_on_cpu);
  auto [y, log_sums] = kForward(qkv_BT3HD, options.causal, options.scale, options.rotation_TD);
  return {.y_BTHD = std::move(y), .log_sums_BHT = std::move(log_sums)};
}

at::Tensor attention_backward(const at::Tensor& dy_BTHD, const at::Tensor& qkv_BT3HD,
                              const AttentionOutput& output, const AttentionOptions& options) {
  static const Operator kBackward(
      "attention_backward(Tensor dy, Tensor qkv, Tensor y, Tensor log_sums, bool causal, float "
      "scale, Tensor? rotation) -> Tensor",
      backward_on_cpu);
  return kBackward(dy_BTHD, qkv_BT3HD, output.y_BTHD, output.log_sums_BHT, options.causal,
                   options.scale, options.rotation_TD);
}

at::Tensor rotation(int64_t tokens, int64_t head_width) {
  const int64_t half = head_width / 2;
  at::Tensor table = at::empty({tokens, head_width}, at::kFloat);
  auto* values = table.mutable_data_ptr<float>();
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(t) *
                           std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half));
      values[t * head_width + i] = static_cast<float>(std::cos(angle));
      values[t * head_width + half + i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

}  // namespace gallop::kernel
