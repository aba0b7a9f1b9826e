// The name in a certificate as one printable line.
#include "core/trust/subject.h"

#include <catch2/catch.hpp>

#include "tests/unit/trust/facility.h"

namespace ccixfer::trust {

TEST_CASE("subject__of_a_certificate__is_its_name_in_one_printable_line") {
  const auto subject = [](const std::string& name) {
    IssueOptions options;
    options.name = name;
    const Issued issued = Facility("Facility").issue(options);
    return subject_of(Identity::from_certificate(issued.certificate_pem(), "c", issued.key_pem(), "k").value());
  };
  CHECK(subject("dtn1.lab.example") == "dtn1.lab.example");
  CHECK(subject("a\x1b[2J") == "a%1B[2J");
}

TEST_CASE("subject__of_a_key_alone__is_empty") { CHECK(subject_of(Identity::generate().value()).empty()); }

}  // namespace ccixfer::trust
