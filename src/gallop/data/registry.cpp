#include "gallop/data/dataset.h"
#include "gallop/data/readers.h"

namespace gallop::data {

ReaderRegistry built_in_readers() {
  ReaderRegistry registry("data set");
  registry.add("fashion-mnist", "28 x 28 gray images of clothes, 10 classes", read_fashion_mnist)
      .add("mnist", "28 x 28 gray images of digits, 10 classes", read_mnist)
      .add("cifar10", "32 x 32 color images, 10 classes", read_cifar10)
      .add("cifar100", "32 x 32 color images, 100 or 20 classes", read_cifar100)
      .add("folder", "a folder of classes with JPEG and PNG files", read_folder)
      .add("tar", "WebDataset shards with JPEG and PNG files", read_tar)
      .add("text", "text as a sequence of characters or bytes", read_text);
  return registry;
}

}  // namespace gallop::data
