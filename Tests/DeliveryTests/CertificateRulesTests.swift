import APNs
import Testing
import Wire

@testable import Delivery

@Suite struct CertificateRulesTests {
  private let bench = DecoderBench()

  private func configure(topics: [String]?) {
    bench.apps.update(
      AppRules(
        name: "shop", bundleID: "com.example.shop", environment: .production, pushTypes: ["newtype": ".x"],
        certificate: CertificateRules(topics: topics)))
  }

  private func sample(_ type: String?, _ topic: String?) -> RequestSample {
    var sample = RequestSample()
    if let type { sample = sample.with("push_type", .text(type)) }
    if let topic { sample = sample.with("topic", .text(topic)) }
    return sample
  }

  @Test(
    arguments: [
      (nil, nil, nil), ("alert", nil, nil), ("voip", nil, nil), ("background", nil, nil), ("newtype", nil, nil),
      ("alert", "com.example.shop", nil), ("voip", "com.example.shop.voip", nil), ("brandnew", "com.example.shop", nil),
      ("location", nil, .badPushType), ("complication", nil, .badPushType), ("liveactivity", nil, .badPushType),
      ("mdm", "com.apple.mgmt.External.1", .badTopic), ("alert", "com.example.other", .badTopic),
      ("brandnew", "com.example.shop.brandnew", .badTopic),
    ] as [(String?, String?, InvalidRule?)], RequestSample.Form.allCases)
  func `only topics of the certificate are sent`(
    _ row: (type: String?, topic: String?, rule: InvalidRule?), _ form: RequestSample.Form
  ) {
    configure(topics: ["com.example.shop", "com.example.shop.voip", "com.example.shop.x"])
    let record = sample(row.type, row.topic).record(form)
    #expect((bench.request(record) != nil) == (row.rule == nil))
    #expect(bench.invalid(record)?.rule == row.rule)
  }

  @Test func `the message names the rule and what the certificate has`() {
    configure(topics: ["com.example.shop", "com.example.shop.voip"])
    #expect(
      bench.invalid(sample("complication", nil).record(.json))?.message
        == "push_type: must have a topic that is in the app's certificate, which has "
        + "com.example.shop, com.example.shop.voip; found com.example.shop.complication")
    #expect(
      bench.invalid(sample("alert", "com.other").record(.json))?.message
        == "topic: must be in the app's certificate, which has com.example.shop, com.example.shop.voip; "
        + "found \"com.other\"")
    #expect(
      bench.invalid(sample("location", nil).record(.json))?.message
        == "push_type: location needs an app with a provider token; found an app with a certificate")
  }

  @Test func `a certificate that names no topics forbids location alone`() {
    configure(topics: nil)
    for type in PushType.allCases where type != .other {
      let isGood = bench.request(sample(type.name, nil).record(.json)) != nil
      #expect(isGood == (type != .location), "\(type)")
    }
    #expect(bench.request(sample("alert", "com.example.other").record(.json)) != nil)
  }

  @Test func `a provider token may send anything`() {
    for type in PushType.allCases where type != .other {
      #expect(bench.request(sample(type.name, nil).record(.json)) != nil, "\(type)")
    }
  }

  @Test func `a broadcast needs no topic in the certificate`() {
    configure(topics: ["com.example.shop"])
    let broadcast = RequestSample().with("token", nil).with("channel", .text("dHN0LXNyY2gtY2hubA=="))
      .with("expiration", .number("1790000001"))
    #expect(bench.request(broadcast.record(.json)) != nil)
  }

  @Test(arguments: RequestSample.Form.allCases)
  func `push to talk is tried once unless the request says otherwise`(_ form: RequestSample.Form) throws {
    let talk = sample("pushtotalk", nil)
    #expect(try #require(bench.request(talk.record(form))).notification.expiration == 0)
    // Before what the app has for all its requests.
    #expect(try #require(bench.request(talk.with("app", .text("bank")).record(form))).notification.expiration == 0)
    let later = talk.with("expiration", .number("1790000005"))
    #expect(try #require(bench.request(later.record(form))).notification.expiration == 1_790_000_005)
    #expect(try #require(bench.request(sample("alert", nil).record(form))).notification.expiration == nil)
  }
}
